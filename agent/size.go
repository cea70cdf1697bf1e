package agent

import (
	"fmt"
	"math"
	"strconv"
	"strings"
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

// parseSize reads the value of a flag: a whole number of bytes, or of a unit such as MiB. minimum is in bytes.
func parseSize(flag, text string, minimum int64) (int64, error) {
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
			return 0, usagef("%s %q is larger than any disk: give a size such as 256MiB", flag, text)
		}
		if size := int64(n) * unit.bytes; size >= minimum {
			return size, nil
		}
		return 0, usagef("%s %q is too small: the minimum is %s", flag, text, sizeText(minimum))
	}
	return 0, usagef("%s %q is not a size: give one such as 256MiB, 1GiB or 500MB", flag, text)
}

// sizeText formats bytes in powers of 1,024, with one decimal.
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

func speedText(bytesPerSecond float64) string { return sizeText(int64(bytesPerSecond)) + "/s" }

// capacityText formats bytes as makers of disks do: in powers of 1,000.
func capacityText(bytes *uint64) string {
	if bytes == nil {
		return "-"
	}
	value, unit := float64(*bytes)/1e9, "GB"
	if value >= 1000 {
		value, unit = value/1000, "TB"
	}
	return fmt.Sprintf("%.3g %s", value, unit)
}

// grouped formats a whole number with commas.
func grouped(v float64) string {
	text := fmt.Sprintf("%.0f", v)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
