package cli

import (
	"math"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/internal/explain"
)

// sizeUnits are in bytes. A bare K or M is not accepted: it means a thousand to some and 1,024 to others.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
	{"B", 1}, {"", 1},
}

// ParseSize reads the value of a flag: a whole number of bytes, or of a unit such as MiB. minimum is in bytes.
func ParseSize(flag, text string, minimum int64) (int64, error) {
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
			return 0, Usagef("%s %q is larger than any disk: give a size such as 256MiB", flag, text)
		}
		if size := int64(n) * unit.bytes; size >= minimum {
			return size, nil
		}
		return 0, Usagef("%s %q is too small: the minimum is %s", flag, text, explain.Size(uint64(minimum)))
	}
	return 0, Usagef("%s %q is not a size: give one such as 256MiB, 1GiB or 500MB", flag, text)
}
