package kernfile

import (
	"math"
	"os"
	"path/filepath"
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

func TestUserIDs(t *testing.T) {
	for text, want := range map[string][2]int{
		"": {-1, -1}, "Name:\tUid:\t9\n": {-1, -1}, "Uid:\n": {-1, -1}, "Uid:\t7\n": {7, -1},
		"Tgid:\t5\nUid:\t1000\t0\t0\t0\nGid:\t1\t2\t3\t4\n": {1000, 0}, // with another's rights
		"Uid:\t4294967295\t4294967296\t0\t0\n":              {math.MaxUint32, -1},
		"Uid:\tx\t-1\t0\t0\n":                               {-1, -1},
	} {
		if own, effective := UserIDs([]byte(text)); [2]int{own, effective} != want {
			t.Errorf("%q: got %d and %d, want %v", text, own, effective, want)
		}
	}
}

func TestMemInfo(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "MemTotal:       24564356 kB\nMemAvailable:    1024 kB\nSwapTotal:\n"
	if err := os.WriteFile(filepath.Join(root, "proc/meminfo"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]uint64{
		"MemTotal": 24564356 << 10, "MemAvailable": 1 << 20, "SwapTotal": 0, "Mem": 0,
	} {
		if got := MemInfo(root, name); got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}
