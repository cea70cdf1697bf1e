package process

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A list of mappings that the kernel does not give is not waited for: here it is a pipe without a writer. Others
// are listed meanwhile, and the same one again once the kernel has answered.
func TestMapsThatBlock(t *testing.T) {
	proc := t.TempDir()
	const line = "7f0000000000-7f0000100000 r--p 00000000 00:01 2 /models/a.gguf\n"
	for pid := 1; pid <= 2; pid++ {
		if err := os.MkdirAll(filepath.Join(proc, strconv.Itoa(pid), "fd"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	pipe := filepath.Join(proc, "1/maps")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(proc, "2/maps"), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	d := NewDirect(proc)
	for range 2 {
		began := time.Now()
		all, err := d.ModelFiles(Key{PID: 1}, FilesWanted{Maps: true})
		if took := time.Since(began); !errors.Is(err, unix.ETIMEDOUT) || took > 2*time.Second {
			t.Errorf("got %+v, %v after %v, want %v soon", all, err, took, unix.ETIMEDOUT)
		}
	}
	if all, err := d.ModelFiles(Key{PID: 2}, FilesWanted{Maps: true}); err != nil || len(all.List) != 1 {
		t.Errorf("another process: got %+v, %v, want its file", all, err)
	}
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString(line); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pipe, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		all, err := d.ModelFiles(Key{PID: 1}, FilesWanted{Maps: true})
		if err == nil && len(all.List) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("after the answer: got %+v, %v, want its file", all, err)
		}
	}
}
