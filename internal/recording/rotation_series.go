package recording

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/stallspan/stallspan/internal/state"
	"github.com/stallspan/stallspan/internal/trust"
)

// series are the files of a recording on disk. It is not safe for concurrent use.
type series struct {
	path string
	keep int
	file *os.File // the one being written, locked
}

// name returns the file of the i-th newest part.
func (s *series) name(i int) string {
	if i == 0 {
		return s.path
	}
	return s.path + "." + strconv.Itoa(i)
}

// open begins the first file. It never changes a file that is not a recording.
func (s *series) open() error {
	target, err := trust.Follow(s.path)
	if err != nil {
		return fmt.Errorf("no recording can be written to %s: %w", s.path, reason(err))
	}
	s.path = target // a link stays one
	kind, err := inspect(s.path)
	if err == nil && kind == recorded {
		err = s.shift()
	} else if err == nil && kind == blank {
		err = os.Remove(s.path)
	}
	if err != nil {
		return err
	}
	return s.create()
}

func (s *series) create() error {
	file, err := os.OpenFile(s.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("no recording can be written to %s, give a file in a folder that exists and is yours: %w", s.path,
			errors.Unwrap(err))
	}
	_ = state.Lock(file, 0) // it is new, so no other process holds it
	s.file = file
	return nil
}

// next renames the complete file to its number and begins another. After an error, there is still a file to write to.
func (s *series) next() error {
	complete := s.file
	if err := s.begin(); err != nil {
		return fmt.Errorf("the recording continues in the same file, because no other could be created: %w", err)
	}
	if err := complete.Close(); err != nil {
		return fmt.Errorf("a complete file of the recording may be damaged: %w", errors.Unwrap(err))
	}
	return nil
}

func (s *series) begin() error {
	switch now, err := os.Stat(s.path); {
	case errors.Is(err, fs.ErrNotExist): // it was moved away
		return s.create()
	case err != nil:
		return err
	case !s.own(now):
		return fmt.Errorf("%s is another file now", s.path)
	}
	if err := s.shift(); err != nil {
		return err
	}
	if err := s.create(); err != nil {
		return errors.Join(err, os.Rename(s.name(1), s.path))
	}
	return nil
}

func (s *series) own(info fs.FileInfo) bool {
	own, err := s.file.Stat()
	return err == nil && os.SameFile(info, own)
}

// shift renames the file at path to number 1, number 1 to number 2, and so on, up to the first free number. If no
// number is free, it replaces the oldest file.
func (s *series) shift() error {
	free := s.keep - 1
	for i := 1; i < s.keep; i++ {
		kind, err := inspect(s.name(i))
		if err != nil {
			return err
		}
		if kind == nothing {
			free = i
			break
		}
	}
	for i := free; i > 0; i-- {
		if err := os.Rename(s.name(i-1), s.name(i)); err != nil {
			return fmt.Errorf("%s cannot be renamed: %w", s.name(i-1), reason(err))
		}
	}
	return nil
}

// reason returns err without the names of files.
func reason(err error) error {
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

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
