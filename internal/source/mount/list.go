package mount

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// List is a process's list of mounts. It is read again only when the kernel reports a change, since each reading takes
// about 5 us for each mount. It is safe for concurrent use.
type List struct {
	path string

	mu      sync.Mutex
	file    *os.File // nil until it is read, and if changes cannot be waited for
	entries []Entry
	err     error
}

// NewList returns the list in a mountinfo file, such as /proc/self/mountinfo. It opens the file when it is needed.
func NewList(path string) *List { return &List{path: path} }

// Entries returns the mounts in the order of the kernel. Do not change them. The error counts lines that cannot be
// parsed, as in Parse.
func (l *List) Entries() ([]Entry, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil && !changed(l.file) {
		return l.entries, l.err
	}
	return l.read()
}

// Close closes the file. Entries opens it again.
func (l *List) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forget()
}

func (l *List) forget() error {
	file := l.file
	l.file, l.entries, l.err = nil, nil, nil
	if file == nil {
		return nil
	}
	return file.Close()
}

// read reads the list. It keeps it if the kernel reports changes of the file: of those after the file was opened, or
// after the last call of changed.
func (l *List) read() ([]Entry, error) {
	file := l.file
	if file == nil {
		var err error
		if file, err = openList(l.path); err != nil {
			return nil, fmt.Errorf("the list of mounts cannot be read: %w", err)
		}
	} else if _, err := file.Seek(0, io.SeekStart); err != nil {
		_ = l.forget()
		return nil, fmt.Errorf("the list of mounts cannot be read: %w", err)
	}
	entries, err := Entries(file)
	var fs unix.Statfs_t // of procfs, poll(2) reports changes, and not of a copy of it
	switch {
	case len(entries) > 0 && unix.Fstatfs(int(file.Fd()), &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC:
		l.file, l.entries, l.err = file, entries, err
	case l.file != nil:
		_ = l.forget()
	default:
		_ = file.Close()
	}
	return entries, err
}

// openList opens a list without os.Open: Go's poller would then wait for changes, too, and each is reported once.
func openList(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// changed reports whether the mounts changed since the file was opened, or since the last call (mounts_poll of
// fs/proc_namespace.c). Without an answer they may have.
func changed(file *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLPRI}}
	_, err := unix.Poll(fds, 0)
	return err != nil || fds[0].Revents != 0
}
