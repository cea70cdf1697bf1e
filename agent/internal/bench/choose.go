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

// maxEntries bounds the entries of a folder that are visited.
const maxEntries = 200_000

var errEnough = errors.New("enough")

// choose returns the largest readable file below a folder that is on the same file system. At least half of the file
// must be allocated: holes are not read from the disk.
func choose(ctx context.Context, folder string) (string, error) {
	info, err := os.Stat(folder)
	if err != nil {
		return "", err
	}
	top, _ := info.Sys().(*syscall.Stat_t)
	best, size, entries := "", int64(minFile)-1, 0
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if entries++; entries > maxEntries || ctx.Err() != nil {
			return errEnough
		}
		if err != nil {
			return nil // permission denied
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
		case info.Mode().IsRegular() && info.Size() > size && st.Blocks*512 >= info.Size()/2 && readable(path):
			best, size = path, info.Size()
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return "", err
	}
	if best == "" {
		return "", fmt.Errorf("there is no readable file of %d MiB or more below %s: give one elsewhere on that disk, or "+
			"--make-file", minFile>>20, folder)
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
