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

// coldTries is the number of attempts to drop a file from the page cache: pages that move between the kernel's lists
// stay at first.
const coldTries = 20

// Cold writes back everything below a folder and drops the files from the page cache. It fails if a page stays, for
// example because a process has mapped it. The file system's metadata (names, extents) stays in memory.
func Cold(folder string) error {
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
		return nil // removed by a program that just ended
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
	return fmt.Errorf(
		"%d bytes of %s stay in the page cache, so reading it would not be slow: has a program mapped it?",
		found,
		path,
	)
}
