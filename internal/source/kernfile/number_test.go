package kernfile

import (
	"strconv"
	"strings"
	"testing"
)

// FuzzParseUint compares ParseUint with strconv.ParseUint.
func FuzzParseUint(f *testing.F) {
	for _, text := range []string{
		"0", "007", "18446744073709551615", "18446744073709551616", "", "-1", "+1", " 1", "1 ", "1_0", "\xb5",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := ParseUint([]byte(text))
		want, err := strconv.ParseUint(text, 10, 64)
		if ok != (err == nil) || ok && got != want {
			t.Errorf("%q: got %d, %v; want %d, %v of strconv", text, got, ok, want, err)
		}
		if ok && strings.TrimLeft(text, "0123456789") != "" {
			t.Errorf("%q: got a number, want an error", text)
		}
	})
}
