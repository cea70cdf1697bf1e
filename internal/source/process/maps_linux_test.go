package process

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/procfile"
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

// Processes of one user whose mappings are not listed do not keep those of another user from it.
func TestMapsOfOthers(t *testing.T) {
	proc := t.TempDir()
	const stuck = 8
	var pipes []string
	for pid := 1; pid <= stuck+1; pid++ {
		folder := filepath.Join(proc, strconv.Itoa(pid))
		maps := filepath.Join(folder, "maps")
		if err := os.MkdirAll(filepath.Join(folder, "fd"), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if pid <= stuck {
			pipes = append(pipes, maps)
			err = errors.Join(unix.Mkfifo(maps, 0o600),
				os.WriteFile(filepath.Join(folder, "status"), []byte("Uid:\t1\t1\t1\t1\n"), 0o600))
		} else {
			err = os.WriteFile(maps, []byte("7f0000000000-7f0000100000 r--p 00000000 00:01 2 /models/a.gguf\n"), 0o600)
			err = errors.Join(err, os.WriteFile(filepath.Join(folder, "status"), []byte("Uid:\t2\t2\t2\t2\n"), 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	d := NewDirect(proc)
	for pid := 1; pid <= stuck; pid++ {
		if _, err := d.ModelFiles(Key{PID: pid}, FilesWanted{Maps: true}); !errors.Is(err, unix.ETIMEDOUT) {
			t.Errorf("process %d: got %v, want %v", pid, err, unix.ETIMEDOUT)
		}
	}
	all, err := d.ModelFiles(Key{PID: stuck + 1}, FilesWanted{Maps: true})
	if err != nil || len(all.List) != 1 {
		t.Errorf("of another user: got %+v, %v, want its file", all, err)
	}
	left := func(pid int) bool { return !procfile.May(proc, pid) }
	for until := time.Now().Add(time.Minute); left(1) || left(2) || left(stuck); time.Sleep(time.Millisecond) {
		for _, pipe := range pipes { // fails without a reader
			if w, err := os.OpenFile(pipe, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
				_ = w.Close()
			}
		}
		if time.Now().After(until) {
			t.Fatal("reads go on after their end")
		}
	}
}
