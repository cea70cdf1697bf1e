package emulate

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// realDir returns a new folder on a real disk.
func realDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	system, err := examine(dir)
	if err != nil {
		t.Skip("needs a file system that can be examined: ", err)
	}
	if system.InMemory {
		t.Skipf("needs a folder on a real disk, and %s is a %s: set TMPDIR", dir, system.Name)
	}
	return dir
}

// prepare writes the smallest possible files.
func prepare(t testing.TB) *Files {
	t.Helper()
	f, err := Prepare(t.Context(), realDir(t), Options{Bytes: roundBytes, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// wantEmpty checks that nothing is left in dir.
func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Errorf("%s is left behind", filepath.Join(dir, entry.Name()))
	}
}

func TestPrepareWritesWhatItSays(t *testing.T) {
	dir := realDir(t)
	f, err := Prepare(t.Context(), dir, Options{Bytes: 2*roundBytes + 5, Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Bytes() != 2*roundBytes || f.ModelBytes() != 16*mib {
		t.Errorf("%d bytes in all and %d of the model", f.Bytes(), f.ModelBytes())
	}
	info, err := os.Stat(f.Dir())
	if err != nil || info.Mode().Perm() != 0o700 || filepath.Dir(f.Dir()) != dir {
		t.Errorf("folder %s: %v, %v", f.Dir(), info.Mode(), err)
	}
	var sum int64
	for _, path := range f.paths() {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != 0o600 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		sum += info.Size()
	}
	if sum != f.Bytes() {
		t.Errorf("the files hold %d bytes, want %d", sum, f.Bytes())
	}
	entries, err := os.ReadDir(f.Dir())
	if err != nil || len(entries) != len(f.paths()) {
		t.Errorf("%d entries in the folder, %v", len(entries), err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	wantEmpty(t, dir)
	if err := f.Close(); err != nil {
		t.Error("closed again: ", err)
	}
}

func TestFilesDoNotCompress(t *testing.T) {
	f := prepare(t)
	data, err := os.ReadFile(f.shard(1))
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestSpeed)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if packed.Len() < len(data) {
		t.Errorf("%d bytes shrink to %d", len(data), packed.Len())
	}
	other, err := os.ReadFile(f.shard(2))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(data[:recordBytes], other[:recordBytes]) || bytes.Equal(data[:recordBytes], data[mib:mib+recordBytes]) {
		t.Error("two blocks are equal")
	}
}

func TestPrepareRefusesInWords(t *testing.T) {
	dir := realDir(t)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir     string
		options Options
		want    string
	}{
		"no folder":  {filepath.Join(dir, "missing"), Options{}, "there is no folder " + filepath.Join(dir, "missing")},
		"a file":     {file, Options{}, "is no folder"},
		"below it":   {filepath.Join(file, "x"), Options{}, "not a directory"},
		"too little": {dir, Options{Bytes: roundBytes - 1}, "from 32 MiB to 928 MiB"},
		"too much":   {dir, Options{Bytes: 1e9}, "from 32 MiB to 928 MiB"},
		"negative":   {dir, Options{Bytes: -1}, "from 32 MiB to 928 MiB"},
		"virtual":    {"/proc", Options{}, "pass --dir"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Prepare(t.Context(), c.dir, c.options)
			if err == nil {
				f.Close()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%q does not say %q in one line", err, c.want)
			}
		})
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	wantEmpty(t, dir)
}

func TestPrepareRefusesMemory(t *testing.T) {
	const dir = "/dev/shm"
	if system, err := examine(dir); err != nil || !system.InMemory {
		t.Skip("needs a tmpfs at ", dir)
	}
	_, err := Prepare(t.Context(), dir, Options{Writing: func(dir string, _ FileSystem) {
		t.Errorf("got a call before the files in %s, want none", dir)
	}})
	if err == nil || !strings.Contains(err.Error(), "/dev/shm lies in memory (tmpfs)") ||
		!strings.Contains(err.Error(), "--dir") {
		t.Error(err)
	}
	t.Setenv("TMPDIR", dir)
	if found := anywhere(roundBytes); found == dir {
		if system, err := examine("/var/tmp"); err == nil && !system.InMemory {
			t.Errorf("found %s where /var/tmp is a %s", found, system.Name)
		}
	}
}

func TestPrepareLeavesNothingWhenCancelled(t *testing.T) {
	dir := realDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Prepare(ctx, dir, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	wantEmpty(t, dir)

	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	go func() {
		f, err := Prepare(ctx, dir, Options{Bytes: 4 * roundBytes, Budget: time.Hour})
		if err == nil {
			err = f.Close()
		}
		failed <- err
	}()
	for len(failed) == 0 { // until writing has begun
		if files, err := filepath.Glob(filepath.Join(dir, "*", "model.bin")); err != nil || len(files) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-failed; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	wantEmpty(t, dir)
}
