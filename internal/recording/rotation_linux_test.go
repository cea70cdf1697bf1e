package recording

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that takes nothing more ends the recording with words, and what it took can be read.
func TestRotationOnAFullDisk(t *testing.T) {
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=8k"); err != nil {
		t.Skipf("needs the right to mount a small file system: %v", err)
	}
	defer func() { _ = unix.Unmount(disk, unix.MNT_DETACH) }()
	path := filepath.Join(disk, "r.gz")
	p, err := Create(path, Header{ID: "id"}, Rotation{MaxSize: 1 << 20}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; err == nil && i < 10_000; i++ {
		err = errors.Join(p.Write(&numbered(i)[0]), p.spool.wait())
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
	if _, err := Create(filepath.Join(disk, "s.gz"), Header{}, Rotation{}, nil); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("on a full disk: got %v, want %v", err, unix.ENOSPC)
	}
	if left, _ := filepath.Glob(disk + "/*"); len(left) != 1 {
		t.Errorf("got the files %v, want 1", left)
	}
}

// Writes do not wait for a disk that hangs. The recording ends when too much waits for it.
func TestSpoolOfADiskThatStalls(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(pipe, os.O_RDWR, 0) // takes 64 KiB, and then nothing
	if err != nil {
		t.Fatal(err)
	}
	s := newSpool(&series{file: file}, nil)
	chunk := make([]byte, 1<<20)
	n := 0
	for ; err == nil && n < 1000; n++ {
		_, err = s.Write(chunk)
	}
	if !errors.Is(err, errBehind) || n < maxQueued>>20 || n > maxQueued>>20+3 {
		t.Errorf("got %d MiB, %v, want %d and %v", n, err, maxQueued>>20, errBehind)
	}
	go func() { _, _ = io.Copy(io.Discard, file) }() // until the file is closed
	if err := s.close(); !errors.Is(err, errBehind) {
		t.Errorf("got %v from close, want %v", err, errBehind)
	}
}
