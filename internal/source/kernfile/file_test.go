package kernfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestReadAt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 6)
	for _, test := range []struct {
		at   int64
		want string
	}{{0, "012345"}, {6, "6789"}, {10, ""}, {0, "012345"}} {
		if n, err := f.ReadAt(buf, test.at); err != nil || string(buf[:n]) != test.want {
			t.Errorf("at %d: got %q, %v; want %q", test.at, buf[:n], err, test.want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = f.ReadAt(buf, 0) }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.ReadAt(buf, 0); err == nil {
		t.Error("a closed file: got no error, want one")
	}
	if _, err := Open(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: got error %v, want fs.ErrNotExist", err)
	}
	if f, err := Open(t.TempDir()); err == nil {
		if _, err := f.ReadAt(buf, 0); err == nil {
			t.Error("a folder: got no error, want one")
		}
		_ = f.Close()
	}
}

// The kernel prints these files in one piece, as the sources assume.
func TestKernelFiles(t *testing.T) {
	for _, path := range []string{
		"/proc/stat", "/proc/self/stat", "/proc/self/io", "/proc/pressure/io", "/sys/fs/cgroup/cpu.stat",
	} {
		f, err := Open(path)
		if err != nil {
			t.Log(err)
			continue
		}
		buf := make([]byte, 1<<20)
		n, err := f.ReadAt(buf, 0)
		if err != nil {
			t.Log(err)
		}
		rest, err := f.ReadAt(buf[n:], int64(n))
		if err != nil || rest != 0 || n == 0 || !bytes.HasSuffix(buf[:n], []byte("\n")) {
			t.Errorf("%s: got %d bytes, then %d, %v; want all lines, then 0", path, n, rest, err)
		}
		_ = f.Close()
	}
}
