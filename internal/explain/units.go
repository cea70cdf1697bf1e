package explain

import (
	"fmt"
	"strings"
)

func percent(share float64) string { return fmt.Sprintf("%.0f %%", share*100) }

func count(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

var units = [...]string{"B", "KiB", "MiB", "GiB", "TiB"}

// Size formats bytes: "7.2 GiB".
func Size(bytes uint64) string {
	v, i := float64(bytes), 0
	for ; v >= 1024 && i < len(units)-1; i++ {
		v /= 1024
	}
	text := fmt.Sprintf("%.1f", v)
	if i < len(units)-1 {
		text = strings.TrimSuffix(text, ".0")
	}
	return text + " " + units[i]
}

// Duration formats seconds with two or three digits and a unit that fits: "12 us", "3.2 s"; "none" for what rounds to 0.
func Duration(seconds float64) string {
	switch {
	case seconds < 0.5e-6:
		return "none"
	case seconds < 0.9995e-3:
		return fmt.Sprintf("%.0f us", seconds*1e6)
	case seconds < 0.9995:
		return fmt.Sprintf("%.3g ms", seconds*1e3)
	case seconds < 99.95:
		return fmt.Sprintf("%.1f s", seconds)
	default:
		return fmt.Sprintf("%.0f s", seconds)
	}
}
