package progress

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the events of the transcripts")

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
		for _, e := range r.Line(time.Duration(n)*time.Second, line) {
			fmt.Fprintf(&rendered, "%d: %s\n", n, render(e))
		}
	})
	if _, err := lines.Write(output); err != nil {
		t.Fatal(err)
	}
	lines.Close()
	for _, e := range r.Close(time.Duration(n+1) * time.Second) {
		fmt.Fprintf(&rendered, "exit: %s\n", render(e))
	}
	return rendered.String()
}

// render shows an event. A line is printed each second.
func render(e Event) string {
	times := fmt.Sprintf("from %.4g", e.From.Seconds())
	if e.Kind == EpochEnd || e.Kind == LoadEnd {
		times += fmt.Sprintf(" to %.4g", e.To.Seconds())
	}
	subject := fmt.Sprint(e.Epoch)
	if e.Epochs > 1 {
		subject += fmt.Sprintf(" of %d epochs", e.Epochs)
	}
	switch e.Kind {
	case LoadBegin, LoadEnd, LoadDrop:
		subject = fmt.Sprintf("%q", e.Model)
	case EpochDrop:
		times = ""
	}
	s := strings.TrimSpace(fmt.Sprintf("%v %s %s", e.Kind, subject, times))
	if e.Loose {
		s += ", loose"
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
