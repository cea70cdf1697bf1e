package recording

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// numbered is a unique reading that compresses badly.
func numbered(i int) *Entry {
	id := fmt.Sprintf("%d-%x", i, i*7919*104729)
	return &Entry{Source: "gpu", Sample: &sample.Sample{At: at(0), GPUs: []sample.GPU{{ID: id}}}}
}

// content returns the numbers of the readings in a file, sorted.
func content(t *testing.T, path string) (numbers []int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	samples, err := all(text)
	for i := range samples {
		var n int
		if _, err := fmt.Sscanf(samples[i].GPUs[0].ID, "%d-", &n); err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	if len(samples) == 0 {
		t.Errorf("%s: got %v, want readings", path, err)
	}
	slices.Sort(numbers)
	return numbers
}

// No reading of any goroutine is missing.
func TestFileOfManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.gz")
	f, err := Create(path, Header{Host: "h"})
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 4, 200
	var done sync.WaitGroup
	for w := range writers {
		done.Go(func() {
			for i := range each {
				if err := f.Write(numbered(w*each + i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	if err := errors.Join(f.Close(), f.Close(), f.Write(numbered(0))); err != nil {
		t.Fatal(err)
	}
	got := content(t, path)
	if len(got) != writers*each || got[0] != 0 || got[len(got)-1] != writers*each-1 {
		t.Errorf("got %d readings, want %d", len(got), writers*each)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || info.Size() != f.Size() {
		t.Errorf("got %v, %v, want mode 0600 and %d bytes", info, err, f.Size())
	}
}

// An existing recording at the path is kept; any other file there is an error.
func TestCreateOverSomething(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "r.gz")
	for i := range 3 {
		f, err := Create(path, Header{})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Write(numbered(i)); err != nil {
			t.Fatal(err)
		}
		if _, err = Create(path, Header{}); err == nil || !strings.Contains(err.Error(), "another stallspan") {
			t.Errorf("a second recording at the same time: got %v, want an error", err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int{path: 2, path + ".1": 1} {
		if got := content(t, name); !slices.Equal(got, []int{want}) {
			t.Errorf("%s: got %v, want reading %d", name, got, want)
		}
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 2 {
		t.Errorf("got the files %v, want 2", left)
	}

	const text = "a diary"
	if err := os.Rename(path, filepath.Join(folder, "s")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"foreign", "s.1"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, says := range map[string]string{
		"foreign": "is not a recording", "s": "s.1 exists and is not a recording", ".": "is not a regular file",
		"no/such": "folder that exists",
	} {
		if _, err := Create(filepath.Join(folder, name), Header{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want an error with %q", name, err, says)
		}
	}
	for _, name := range []string{"foreign", "s.1"} {
		if left, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(left) != text {
			t.Errorf("%s: got %q, %v, want it unchanged", name, left, err)
		}
	}
	content(t, filepath.Join(folder, "s"))
}

func TestCreateOverNothing(t *testing.T) {
	folder := t.TempDir()
	target, link := filepath.Join(folder, "empty"), filepath.Join(folder, "link")
	if err := errors.Join(os.WriteFile(target, nil, 0o644), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	f, err := Create(link, Header{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Write(numbered(1)), f.Close()); err != nil {
		t.Fatal(err)
	}
	content(t, target)
	if left, _ := filepath.Glob(folder + "/*"); len(left) != 2 {
		t.Errorf("got the files %v, want 2", left)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("got %v, %v, want the link", info, err)
	}
}
