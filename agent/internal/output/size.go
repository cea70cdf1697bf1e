package output

import (
	"fmt"
	"strings"
)

// SizeText formats bytes in powers of 1,024, with one decimal.
func SizeText(bytes int64) string {
	v, unit := float64(bytes), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB"} {
		if v < 1024 {
			break
		}
		v, unit = v/1024, larger
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") + " " + unit
}

// SpeedText formats bytes per second.
func SpeedText(bytesPerSecond float64) string { return SizeText(int64(bytesPerSecond)) + "/s" }

// CapacityText formats bytes as makers of disks do: in powers of 1,000.
func CapacityText(bytes *uint64) string {
	if bytes == nil {
		return "-"
	}
	value, unit := float64(*bytes)/1e9, "GB"
	if value >= 1000 {
		value, unit = value/1000, "TB"
	}
	return fmt.Sprintf("%.3g %s", value, unit)
}

// Grouped formats a whole number with commas.
func Grouped(v float64) string {
	text := fmt.Sprintf("%.0f", v)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
