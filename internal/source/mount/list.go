package mount

import (
	"fmt"
	"io"
	"os"
	"sync"
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
	switch {
	case len(entries) > 0 && reportsChanges(file):
		l.file, l.entries, l.err = file, entries, err
	case l.file != nil:
		_ = l.forget()
	default:
		_ = file.Close()
	}
	return entries, err
}
