//go:build linux

package pipeline

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// block is the alignment of O_DIRECT, in bytes: of offsets, lengths and memory.
const block = 4096

// openFiles holds the files of a plan, opened for its kind of reading. Several threads may read from them.
type openFiles struct {
	paths  []string
	fds    []int
	mapped [][]byte // of Mapped
}

func open(paths []string, r Reading) (*openFiles, error) {
	f := &openFiles{paths: paths}
	flags := unix.O_RDONLY | unix.O_CLOEXEC
	if r == Direct || r == Uring {
		flags |= unix.O_DIRECT
	}
	for _, path := range paths {
		err := f.add(path, flags, r == Mapped)
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
	}
	return f, nil
}

func (f *openFiles) add(path string, flags int, mapped bool) error {
	fd, err := retry(func() (int, error) { return unix.Open(path, flags, 0) })
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	f.fds = append(f.fds, fd)
	if !mapped {
		return nil
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	var memory []byte
	if stat.Size > 0 {
		if memory, err = unix.Mmap(fd, 0, int(stat.Size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
			return &os.PathError{Op: "mmap", Path: path, Err: err}
		}
	}
	f.mapped = append(f.mapped, memory)
	return nil
}

func (f *openFiles) close() error {
	var errs []error
	for _, memory := range f.mapped {
		if memory != nil {
			errs = append(errs, unix.Munmap(memory))
		}
	}
	for _, fd := range f.fds {
		errs = append(errs, unix.Close(fd))
	}
	f.mapped, f.fds = nil, nil
	return errors.Join(errs...)
}

// retry repeats a call until no signal interrupts it.
func retry(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); err != unix.EINTR { //nolint:errorlint // an errno of the kernel
			return n, err
		}
	}
}
