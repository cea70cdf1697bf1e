package recording

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/stallspan/stallspan/internal/state"
	"github.com/stallspan/stallspan/internal/trust"
)

// File is a recording on disk. Writing never waits for the disk, so that a slow disk delays only the recording. It is
// safe for concurrent use.
type File struct {
	*Writer // an error of the disk is returned by a later Write and by Close
	file    *os.File
	spool   *Spool
}

// Create begins a recording at path, with mode 0600. A recording that exists there, as after a kill, becomes PATH.1 and
// replaces one of that name. Any other file at either path is an error, and so is a recording that another program is
// writing.
func Create(path string, h Header) (*File, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	f := &File{file: file, spool: NewSpool(file)}
	f.Writer, err = NewWriter(f.spool, h)
	if err == nil {
		err = broken(f.spool.flush()) // to notice a full disk now
	}
	if err != nil {
		_ = f.Close()
		_ = os.Remove(file.Name())
		return nil, err
	}
	return f, nil
}

func broken(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the recording cannot be written, check its disk: %w", err)
}

// Close ends the recording and waits until it is on disk. The error is the reason why it is incomplete. Close may be
// called again.
func (f *File) Close() error {
	err := f.Writer.Close()
	failed := f.spool.End()
	if !errors.Is(failed, errStuck) {
		if unclosed := f.file.Close(); !errors.Is(unclosed, fs.ErrClosed) {
			failed = cmp.Or(failed, unclosed)
		}
	}
	if failed != nil {
		return broken(reason(failed)) // err has the same reason
	}
	return err
}

// Size returns the bytes written so far.
func (f *File) Size() int64 {
	f.spool.mu.Lock()
	defer f.spool.mu.Unlock()
	return f.spool.written
}

// open creates the file of a recording. It never changes a file that is not a recording.
func open(path string) (*os.File, error) {
	target, err := trust.Follow(path)
	if err != nil {
		return nil, fmt.Errorf("no recording can be written to %s: %w", path, err)
	}
	path = target // a link stays one
	switch kind, err := inspect(path); {
	case err != nil:
		return nil, err
	case kind == blank:
		err = os.Remove(path)
		if err != nil {
			return nil, fmt.Errorf("%s cannot be replaced: %w", path, reason(err))
		}
	case kind == recorded:
		if _, err := inspect(path + ".1"); err != nil {
			return nil, err
		}
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, fmt.Errorf("%s cannot be renamed: %w", path, reason(err))
		}
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("no recording can be written to %s, give a file in a folder that exists and is yours: %w",
			path, reason(err))
	}
	_ = state.Lock(file, 0) // it is new, so no other process holds it
	return file, nil
}

// reason returns an error of the system without the names of files.
func reason(err error) error { return cmp.Or(errors.Unwrap(err), err) }

// fileKind is what a name refers to.
type fileKind int

const (
	nothing  fileKind = iota
	blank             // an empty file
	recorded          // a recording, of any format
)

// inspect returns what is at path. The error is for files that must not be changed.
func inspect(path string) (fileKind, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nothing, nil
	case err != nil:
		return nothing, fmt.Errorf("no recording can be written to %s: %w", path, errors.Unwrap(err))
	case !info.Mode().IsRegular():
		return nothing, fmt.Errorf("%s is not a regular file: choose another name for the recording", path)
	case info.Size() == 0:
		return blank, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nothing, fmt.Errorf("%s exists and cannot be read, choose another name: %w", path, errors.Unwrap(err))
	}
	defer func() { _ = file.Close() }()
	if state.Lock(file, 0) != nil { // another process writes it
		return nothing, fmt.Errorf("%s is being written by another stallspan: choose another name, or stop that one", path)
	}
	if _, err := NewReader(file); errors.Is(err, ErrForeign) {
		return nothing, fmt.Errorf("%s exists and is not a recording: choose another name, or move it away", path)
	}
	return recorded, nil
}
