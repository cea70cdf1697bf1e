package decimal

import (
	"strconv"
	"strings"
	"testing"
)

// FuzzParse holds the parser against strconv's.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"0", "007", "18446744073709551615", "18446744073709551616", "", "-1", "+1", " 1", "1 ", "1_0", "\xb5"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := Parse([]byte(text))
		want, err := strconv.ParseUint(text, 10, 64)
		if ok != (err == nil) || ok && got != want {
			t.Errorf("%q: %d %v, strconv has %d %v", text, got, ok, want, err)
		}
		if ok && strings.TrimLeft(text, "0123456789") != "" {
			t.Errorf("%q was taken for a number", text)
		}
	})
}
