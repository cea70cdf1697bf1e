package process

import (
	"bytes"
	"errors"
	"io/fs"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// maxOpen bounds the open files of each kind, stat and io, so that a large job leaves file descriptors to the rest of
// the program. Further files are opened at every reading.
const maxOpen = 1024

// file is a small file of /proc or of a cgroup that stays open between readings.
type file struct {
	path string
	open *kernfile.File
}

// read returns the text of a file, valid until the next read of any file. An open file belongs to its process: if
// another process gets the ID, read fails.
func (s *Source) read(f *file) ([]byte, error) {
	if f.open == nil && s.open >= maxOpen {
		return kernfile.ReadPiece(f.path, s.buf[:])
	}
	if f.open == nil {
		opened, err := kernfile.Open(f.path)
		if err != nil {
			return nil, err
		}
		f.open = opened
		s.open++
	}
	n, err := f.open.ReadAt(s.buf[:], 0)
	if err != nil {
		s.close(f)
		return nil, err
	}
	return s.buf[:n], nil
}

func (s *Source) close(f *file) {
	if f.open != nil {
		_ = f.open.Close() // read-only: the error has no meaning
		f.open = nil
		s.open--
	}
}

// gone reports whether err means that the process or cgroup no longer exists.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.ENODEV)
}

// outOfFiles reports whether err is the limit of open files of this program or of the machine.
func outOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// maxSmall bounds files that are read once, in bytes.
const maxSmall = 4096

// readSmall returns the text of a file that is read once and that the kernel prints in one piece.
func readSmall(path string) ([]byte, error) {
	var buf [maxSmall]byte
	text, err := kernfile.ReadPiece(path, buf[:])
	return bytes.Clone(text), err
}

// readAll returns up to limit bytes of a file that is read once. Most are small.
func readAll(path string, limit int) ([]byte, error) {
	var buf [4096]byte
	text, err := kernfile.ReadOnce(path, buf[:min(limit, len(buf))])
	if err == nil && len(text) == len(buf) && limit > len(buf) {
		return kernfile.ReadOnce(path, make([]byte, limit))
	}
	return bytes.Clone(text), err
}
