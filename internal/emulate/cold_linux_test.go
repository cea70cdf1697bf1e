package emulate

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestColdSaysWhatStays(t *testing.T) {
	f := prepare(t)
	err := with(f.Model(), func(file *os.File) error { // mapped pages stay cached
		pages, err := unix.Mmap(int(file.Fd()), 0, int(f.ModelBytes()), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
		if err != nil {
			t.Skip("needs a file system with mmap: ", err)
		}
		return errors.Join(f.Cold(), unix.Munmap(pages))
	})
	var still *StillCachedError
	if !errors.As(err, &still) || still.Cached < f.ModelBytes()*9/10 || still.Of != f.Bytes() {
		t.Fatalf("Cold: got %+v, %v; want the cached bytes of the model", still, err)
	}
	if !strings.Contains(still.Error(), "8 MiB of 32 MiB stay in the page cache of this "+f.FileSystem().Name) {
		t.Errorf("error: got %q, want the bytes that stay and the file system", still)
	}
}

func TestExamine(t *testing.T) {
	if system, err := examine("/proc"); err != nil || system.InMemory || system.Free != -1 ||
		system.Name != "proc" {
		t.Errorf("/proc: %+v, %v", system, err)
	}
	if _, err := examine("/missing/path"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	system, err := examine(realDir(t))
	if err != nil || system.Free <= 0 || system.Block < int64(os.Getpagesize()) || system.Name == "" {
		t.Errorf("examine: got %+v, %v; want a name, free bytes and a block of at least a page", system, err)
	}
}
