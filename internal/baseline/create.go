package baseline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
)

// create makes the file under another name and gives it its own when it is whole, so that a crash leaves no half of one,
// and of several programs that do so at once one is the first.
func create(path string) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return err
	}
	sweep(folder)
	temp, err := os.CreateTemp(folder, unfinished) // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	if err := temp.Close(); err != nil {
		return err
	}
	db, err := bbolt.Open(temp.Name(), fileMode, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(db.Update(begin), db.Close()); err != nil {
		return err
	}
	switch err := os.Link(temp.Name(), path); {
	case err == nil, errors.Is(err, fs.ErrExist):
		return nil
	default: // a file system without links
		return os.Rename(temp.Name(), path)
	}
}

const unfinished = ".baseline-*.new"

// sweep removes what a crash within create has left.
func sweep(folder string) {
	left, _ := filepath.Glob(filepath.Join(folder, unfinished))
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(path)
		}
	}
}

// aside gives a file another name, under which nobody looks at it. Its lock must be held.
func aside(path, kind string) (name string, err error) {
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
