package output

import (
	"fmt"

	"github.com/stallspan/stallspan/internal/explain"
)

// SpeedText formats bytes per second.
func SpeedText(bytesPerSecond float64) string {
	return explain.Size(uint64(max(0, bytesPerSecond))) + "/s"
}

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
