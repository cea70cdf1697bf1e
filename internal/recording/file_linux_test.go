package recording

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that takes nothing more ends the recording with words, and what it took can be read.
func TestFileOnAFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=8k"); err != nil {
		t.Skipf("needs the right to mount a small file system: %v", err)
	}
	defer func() { _ = unix.Unmount(disk, unix.MNT_DETACH) }()
	path := filepath.Join(disk, "r.gz")
	p, err := Create(path, Header{})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; err == nil && i < 10_000; i++ {
		err = errors.Join(p.Write(numbered(i)), p.spool.flush())
	}
	closed := p.Close()
	if !errors.Is(closed, unix.ENOSPC) || !strings.Contains(closed.Error(), "cannot be written, check its disk") {
		t.Errorf("got %v, then %v, want %v", err, closed, unix.ENOSPC)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := all(text); !errors.Is(err, ErrCut) || len(got) < 50 {
		t.Errorf("got %d readings, %v, want at least 50 and %v", len(got), err, ErrCut)
	}
	if _, err := Create(filepath.Join(disk, "s.gz"), Header{}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("on a full disk: got %v, want %v", err, unix.ENOSPC)
	}
	if left, _ := filepath.Glob(disk + "/*"); len(left) != 1 {
		t.Errorf("got the files %v, want 1", left)
	}
}
