package kernfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// The folder of this process's open files: as many as need several calls, and what each link points to.
func TestBriefFolder(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	files := map[string]string{}
	for i := range 300 {
		path := filepath.Join(t.TempDir(), "file "+strconv.Itoa(i))
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		files[strconv.Itoa(int(f.Fd()))] = path
	}
	folder, err := OpenFolderBrief("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	var names []string
	var buf [4096]byte
	if err := folder.EachName(10_000, func(name []byte) {
		names = append(names, string(name))
		want := files[string(name)]
		if want == "" {
			return
		}
		if to, err := folder.Link(name, buf[:]); err != nil || string(to) != want {
			t.Errorf("link %s: got %q, %v, want %q", name, to, err, want)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if !slices.Contains(names, name) {
			t.Errorf("got no file %s among %d", name, len(names))
		}
	}
	if slices.Contains(names, ".") || slices.Contains(names, "..") {
		t.Error("got the folder itself among the names, want the files alone")
	}
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil || len(all) < len(names)-1 || len(all) > len(names)+2 {
		t.Errorf("got %d names, want about the %d that os.ReadDir returns (%v)", len(names), len(all), err)
	}
	if _, err := folder.Link([]byte("x"), buf[:]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no link: got %v, want %v", err, fs.ErrNotExist)
	}
	for name := range files {
		text, err := folder.ReadPiece("../fdinfo/"+name, buf[:])
		if err != nil || string(text[:4]) != "pos:" {
			t.Errorf("fdinfo/%s: got %q, %v, want the position first", name, text, err)
		}
		break
	}
}

func TestBriefFolderLimits(t *testing.T) {
	dir := t.TempDir()
	for i := range 9 {
		if err := os.Symlink("to", filepath.Join(dir, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := OpenFolderBrief(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	n := 0
	if err := folder.EachName(7, func([]byte) { n++ }); err != nil || n != 7 {
		t.Errorf("with limit 7: got %d names, %v", n, err)
	}
	if to, err := folder.Link([]byte("3"), make([]byte, 1)); string(to) != "t" || err != nil {
		t.Errorf("with a buffer of one byte: got %q, %v, want %q", to, err, "t")
	}
	if _, err := OpenFolderBrief(dir + "-"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: got %v, want %v", err, fs.ErrNotExist)
	}
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadPieceBrief(path, make([]byte, 4)); string(got) != "0123" || err != nil {
		t.Errorf("with a buffer of 4 bytes: got %q, %v, want %q", got, err, "0123")
	}
	if _, err := ReadPieceBrief(path+"-", make([]byte, 4)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no file: got %v, want %v", err, fs.ErrNotExist)
	}
}

// Signals of Go's runtime interrupt the reading of a folder, and leave out no name.
func TestBriefFolderWithSignals(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	for range 300 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
	}
	ctx, stop := context.WithCancel(t.Context())
	var sender sync.WaitGroup
	sender.Go(func() {
		for ctx.Err() == nil {
			_ = syscall.Kill(os.Getpid(), syscall.SIGURG)
		}
	})
	defer sender.Wait()
	defer stop()
	for range 500 {
		folder, err := OpenFolderBrief("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		names := 0
		err = folder.EachName(10_000, func([]byte) { names++ })
		folder.Close()
		if err != nil || names < 300 {
			t.Fatalf("got %d names, %v, want 300 and more", names, err)
		}
	}
}
