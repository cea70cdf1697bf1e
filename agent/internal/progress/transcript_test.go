package progress

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the events of the transcripts, and the table in docs/epochs.md")

// events renders the events of a whole output, with the numbers of their lines.
func events(t testing.TB, options Options, output []byte) string {
	t.Helper()
	r, err := NewReader(options)
	if err != nil {
		t.Fatal(err)
	}
	var rendered strings.Builder
	n := 0
	lines := NewLines(func(line []byte) {
		n++
		for _, e := range r.Line(line) {
			fmt.Fprintf(&rendered, "%d: %s\n", n, render(e))
		}
	})
	if _, err := lines.Write(output); err != nil {
		t.Fatal(err)
	}
	lines.Close()
	for _, e := range r.Close() {
		fmt.Fprintf(&rendered, "exit: %s\n", render(e))
	}
	return rendered.String()
}

func render(e Event) string {
	s := e.Kind.String()
	if e.Kind == LoadBegin || e.Kind == LoadEnd {
		s += fmt.Sprintf(" %q", e.Model)
	} else {
		s += fmt.Sprintf(" %d", e.Epoch)
		if e.Total > 0 {
			s += fmt.Sprintf(" of %d", e.Total)
		}
		s += fmt.Sprintf(", %.4g done", e.Fraction)
	}
	if e.Void {
		s += ", void"
	}
	return s
}

func transcripts(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/output/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts in testdata/output: %v", err)
	}
	return paths
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTranscripts(t *testing.T) {
	for _, path := range transcripts(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			got := events(t, Options{}, read(t, path))
			golden := strings.TrimSuffix(path, ".txt") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := string(read(t, golden)); got != want {
				t.Errorf("events of %s:\n%s\nwant:\n%s", path, got, want)
			}
		})
	}
}

// Every line of testdata/output/silent.txt contains words of epochs or loads, but marks none.
func TestSilentLines(t *testing.T) {
	for line := range bytes.Lines(read(t, "testdata/output/silent.txt")) {
		if got := events(t, Options{}, line); got != "" {
			t.Errorf("%q: got %s, want no event", line, got)
		}
	}
}
