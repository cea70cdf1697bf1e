package baseline

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/stallspan/stallspan/internal/statefile"
)

// create makes the file under another name and gives it its own when it is whole, so that a crash leaves no half of one,
// and of several programs that do so at once one is the first.
func create(path string) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return err
	}
	statefile.Sweep(folder, unfinished)
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
