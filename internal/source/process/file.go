package process

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// mostOpen bounds the files that are kept open, so that a large job leaves descriptors to the rest of the program.
// What goes beyond is opened at every reading.
const mostOpen = 1024

// file is a small file of /proc or of a cgroup that is read again and again.
type file struct {
	path string
	kept *kernfile.File
}

// read gives the text of now, valid until the next read of any file. A file of a process that was open stays with
// that process: should the process ID be given to another one, it fails.
func (s *Source) read(f *file) ([]byte, error) {
	if f.kept == nil {
		opened, err := kernfile.Open(f.path)
		if err != nil {
			return nil, err
		}
		f.kept = opened
		s.open++
	}
	n, err := f.kept.ReadAt(s.buf[:], 0)
	if err != nil {
		s.close(f)
		return nil, err
	}
	if s.open > mostOpen {
		s.close(f)
	}
	return s.buf[:n], nil
}

func (s *Source) close(f *file) {
	if f.kept != nil {
		_ = f.kept.Close() // it was only read from: there is nothing to lose
		f.kept = nil
		s.open--
	}
}

// gone tells whether err means that the process or cgroup is not there any more.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.ENODEV)
}

// outOfFiles tells whether a file could not be opened because this program, or the machine, has too many open.
func outOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// readAll gives up to most bytes of a file that is needed only now.
func readAll(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// names lists a folder of numbers, in the kernel's order, up to most of them.
func names(path string, most int) ([]string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	list, err := dir.Readdirnames(most)
	if errors.Is(err, io.EOF) {
		err = nil // an empty folder
	}
	return list, err
}
