package agent

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// leastPart is the least size of a recording's file, in bytes: some minutes of a small machine.
const leastPart = 1 << 20

// sizeUnits are in bytes. A bare K or M is none: it means a thousand to some and 1,024 to others.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"B", 1}, {"", 1},
}

// parseSize reads a whole number of bytes, or of a unit like MiB, that a flag was given. The error names the flag.
func parseSize(flag, text string, least int64) (int64, error) {
	for _, unit := range sizeUnits {
		number := strings.TrimSpace(text)
		cut := len(number) - len(unit.name)
		if cut < 0 || !strings.EqualFold(number[cut:], unit.name) {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(number[:cut]), 10, 63)
		if err != nil {
			break
		}
		if n > uint64(math.MaxInt64/unit.bytes) {
			return 0, fmt.Errorf("%s %q is more than any disk holds: write a size like 256MiB", flag, text)
		}
		if size := int64(n) * unit.bytes; size >= least {
			return size, nil
		}
		return 0, fmt.Errorf("%s %q is too small: the least is %s", flag, text, sizeText(least))
	}
	return 0, fmt.Errorf("%s %q is no size: write one like 256MiB, 1GiB or 500MB", flag, text)
}

// sizeText writes bytes for a person, with one decimal.
func sizeText(bytes int64) string {
	v, unit := float64(bytes), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB"} {
		if v < 1024 {
			break
		}
		v, unit = v/1024, larger
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + unit
}
