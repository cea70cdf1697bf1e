package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// mostEntries bounds how much of a folder is looked at.
const mostEntries = 200_000

var errEnough = errors.New("enough")

// choose is the largest file below a folder, on the same file system and without holes, of those that may be read.
func choose(ctx context.Context, folder string) (string, error) {
	info, err := os.Stat(folder)
	if err != nil {
		return "", err
	}
	top, _ := info.Sys().(*syscall.Stat_t)
	best, most, entries := "", int64(leastIn)-1, 0
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if entries++; entries > mostEntries || ctx.Err() != nil {
			return errEnough
		}
		if err != nil {
			return nil // it may not be looked at
		}
		if !entry.IsDir() && !entry.Type().IsRegular() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		st, known := info.Sys().(*syscall.Stat_t)
		switch {
		case !known || top == nil:
		case st.Dev != top.Dev && entry.IsDir():
			return fs.SkipDir
		case info.Mode().IsRegular() && info.Size() > most && st.Blocks*512 >= info.Size()/2 && readable(path):
			best, most = path, info.Size()
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return "", err
	}
	if best == "" {
		return "", fmt.Errorf("below %s there is no file of %d MiB or more that can be read: name one elsewhere on that "+
			"disk, or have one made with --make-file",
			folder, leastIn>>20)
	}
	return best, nil
}

func readable(path string) bool {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	_ = file.Close()
	return true
}
