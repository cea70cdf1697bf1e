package slowdisk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/pagecache"
)

// coldTries is how often a file is told to leave the page cache: pages on their way to a list of the kernel's stay at
// first.
const coldTries = 20

// cold writes everything below a folder back, and makes the files leave the page cache. It fails where a page stays, as
// one does that somebody has mapped. What a file system knows of its files (names, extents) stays in memory.
func cold(folder string) error {
	top, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer func() { _ = top.Close() }()
	if err := unix.Syncfs(int(top.Fd())); err != nil {
		return &os.PathError{Op: "sync", Path: folder, Err: err}
	}
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		return forget(path)
	})
}

func forget(path string) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a program that ends has just removed it
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	var found int64
	for try := range coldTries {
		time.Sleep(time.Duration(try) * time.Millisecond)
		if err := pagecache.Forget(file); err != nil {
			return err
		}
		if found, _, err = pagecache.Resident(file); err != nil || found == 0 {
			return err
		}
	}
	return fmt.Errorf("%d bytes of %s stay in the page cache, so reading it would not be slow: has a program mapped it?", found, path)
}
