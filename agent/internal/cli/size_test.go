package cli

import (
	"strconv"
	"strings"
	"testing"
)

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"256MiB": 256 << 20, "1GiB": 1 << 30, "1 gib": 1 << 30, "500MB": 500e6, "2TB": 2e12, "1048576": 1 << 20,
		"1048576B": 1 << 20, " 1024 KiB ": 1 << 20, "8388607TiB": 8388607 << 40,
	} {
		if got, err := ParseSize("max_size", text, 1<<20); err != nil || got != want {
			t.Errorf("%q: got %d %v, want %d", text, got, err, want)
		}
	}
	for text, says := range map[string]string{
		"": "is not a size", "MiB": "is not a size", "12M": "is not a size", "-1MiB": "is not a size", "1.5GiB": "is not a size",
		"0x10MiB": "is not a size", "1e9": "is not a size", "MiB12": "is not a size", "1 2MiB": "is not a size", "+1GiB": "is not a size",
		"0": "too small: the minimum is 1 MiB", "1048575": "too small", "1000KB": "too small",
		"8388608TiB": "larger than any disk", "9223372036854775808": "is not a size",
	} {
		if _, err := ParseSize("max_size", text, 1<<20); err == nil || !strings.Contains(err.Error(), says) ||
			!strings.HasPrefix(err.Error(), "max_size ") {
			t.Errorf("%q: got %v, want an error with %q", text, err, says)
		}
	}
}

// A parsed size is at least the minimum, and errors have one line.
func FuzzParseSize(f *testing.F) {
	for _, text := range []string{"256MiB", "1 GB", "", "9999999999999TiB", "MiB", "1\n2MiB", "1\nMiB", "0\n", "İB"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		size, err := ParseSize("max_size", text, 1<<20)
		if err == nil && size < 1<<20 {
			t.Errorf("%q: got %d, want at least %d", text, size, 1<<20)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: more than a line: %v", text, err)
		}
		if err != nil {
			return
		}
		if again, err := ParseSize("", strconv.FormatInt(size, 10), 1<<20); err != nil || again != size {
			t.Errorf("%q is %d, and that is %d: %v", text, size, again, err)
		}
	})
}
