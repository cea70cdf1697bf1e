package kernfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

func TestReadWholeOfTheKernel(t *testing.T) {
	want, err := os.ReadFile("/proc/self/mountinfo") // in pieces, where it is long
	if err != nil {
		t.Skip("needs /proc:", err)
	}
	got, err := ReadWhole("/proc/self/mountinfo", nil, 1<<20)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes and %v, want the %d bytes that os.ReadFile returns", len(got), err, len(want))
	}
}

func TestReadPiece(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadPiece(path, make([]byte, 4)); string(got) != "0123" || err != nil {
		t.Errorf("with a buffer of 4 bytes: got %q, %v, want %q", got, err, "0123")
	}
	if got, err := ReadPiece(path, make([]byte, 40)); string(got) != "0123456789" || err != nil {
		t.Errorf("with a buffer of 40 bytes: got %q, %v, want all", got, err)
	}
	if _, err := ReadPiece(path+"-", make([]byte, 4)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no file: got %v, want %v", err, fs.ErrNotExist)
	}
}

func TestNames(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 1000 { // more than one call returns
		want = append(want, "a file with number "+strconv.Itoa(i))
		if err := os.WriteFile(filepath.Join(dir, want[i]), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Names(dir, 2000)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %d names, want %d", len(got), len(want))
	}
	if got, err := Names(dir, 7); len(got) != 7 || err != nil {
		t.Errorf("with limit 7: got %d names, %v", len(got), err)
	}
	if _, err := Names(filepath.Join(dir, want[0]), 7); err == nil {
		t.Error("names in a file: got no error, want one")
	}
	if _, err := Names(dir+"-", 7); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("names in no folder: got %v, want %v", err, fs.ErrNotExist)
	}
	empty := t.TempDir()
	if got, err := Names(empty, 7); len(got) != 0 || err != nil {
		t.Errorf("names in an empty folder: got %v, %v, want none", got, err)
	}
}

func TestReadWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if _, err := ReadWhole(path, nil, 10); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want an error about a missing file", err)
	}
	want := bytes.Repeat([]byte("0123456789"), 2000)
	if err := os.WriteFile(path, want, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 4096, len(want), len(want) + 1} {
		for _, limit := range []int{5000, len(want), 2 * len(want)} {
			got, err := ReadWhole(path, make([]byte, size), limit)
			if err != nil || !bytes.Equal(got, want[:min(limit, len(want))]) {
				t.Errorf("with a buffer of %d and a limit of %d: got %d bytes and %v", size, limit, len(got), err)
			}
		}
	}
}
