// Package statefile keeps the files that one program leaves for later ones: whole at any moment, and never thrown away.
package statefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Replace gives a file a new text and the mode 0600, or leaves it as it is. A crash at any moment leaves one of the two.
// Its folder has to be there.
func Replace(path string, text []byte) error {
	folder := filepath.Dir(path)
	unfinished := "." + filepath.Base(path) + "-*.new"
	Sweep(folder, unfinished)
	temp, err := os.CreateTemp(folder, unfinished)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // an error: it has its name by then
	_, err = temp.Write(text)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}

// Sweep removes what crashes have left in a folder: files by that pattern of filepath.Match that are over an hour old.
func Sweep(folder, unfinished string) {
	left, _ := filepath.Glob(filepath.Join(folder, unfinished))
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(path)
		}
	}
}

// Aside gives a file that cannot be used another name, under which nobody looks at it: the old one, the kind of its fault
// and the time. Where others may do the same at once, a lock must be held.
func Aside(path, kind string) (name string, err error) {
	stem := path + "." + kind + "-" + time.Now().UTC().Format("20060102T150405Z")
	for i := 1; i < 1000; i++ {
		name = stem
		if i > 1 {
			name += "-" + strconv.Itoa(i)
		}
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, os.Rename(path, name)
		}
	}
	return "", fmt.Errorf("%s and hundreds like it are there already", stem)
}
