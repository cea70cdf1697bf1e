package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCheck: a threshold that no test notices is found, and one whose comment names none.
func TestCheck(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example\n\ngo 1.26\n",
		"thresholds.go": `package example

import "time"

const (
	// limit is what fits.
	// s; chosen; TestFits.
	limit = 2 * time.Second
	// count may move.
	// Count; measured, somewhere; TestFits.
	count = 3
	// share has no test.
	share = 0.5
)

var of = struct {
	// Size may grow.
	// Bytes; kernel; TestFits.
	Size int
}{
	Size: 10,
}
`,
		"example.go": "package example\n\nfunc fits(x float64) bool { return x <= limit.Seconds() && float64(count) > share }\n",
		"example_test.go": `package example

import "testing"

func TestFits(t *testing.T) {
	if !fits(1.9) || fits(2.1) || of.Size < 9 {
		t.Error("it does not fit")
	}
}
`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := check(folder)
	want := []string{
		"TestFits passes if count is larger", "TestFits passes if count is smaller",
		"share names no test; if it is larger, there fail: []", "share names no test; if it is smaller, there fail: []",
		"TestFits passes if of.Size is larger",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, error %v, want:\n%s", strings.Join(got, "\n"), err, strings.Join(want, "\n"))
	}
}
