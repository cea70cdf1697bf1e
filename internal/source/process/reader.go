package process

import (
	"errors"
	"syscall"

	"github.com/stallspan/stallspan/internal/sample"
)

// Reader reads what the kernel shows of a process only to those who may trace it (ptrace(2)): a Direct with the rights
// of this process, or one with more rights. Errors are of type syscall.Errno where the kernel
// gave one. A Reader is safe for concurrent use.
type Reader interface {
	// Bytes fills into with the bytes of each of these processes, in their order. Both have the same length.
	Bytes(of []Key, into []Bytes) error
	// Files returns up to limit open files of a process, from the one with an index, and the number of open files. It
	// leaves out folders.
	Files(of Key, from, limit int) (list []OpenFile, files int, err error)
	// SameProgram reports whether two processes run the same executable.
	SameProgram(one, other Key) (bool, error)
	// ModelFiles returns the files of models that a process has open, and what else is wanted. The error is ETIMEDOUT if
	// the kernel does not list its mappings: they may be asked for later.
	ModelFiles(of Key, want FilesWanted) (Files, error)
	// HasDevice reports whether a process has a character device open, by its number, and how many open files were looked
	// at for that: the lowest 1,024 at most.
	HasDevice(of Key, device uint64) (open bool, files int, err error)
}

// Key identifies a process. Start is in ticks since boot; 0 is for whichever process has the PID.
type Key struct {
	PID   int
	Start uint64
}

// KeyOf returns the Key of a process by its reading.
func KeyOf(p *sample.Process) Key { return Key{PID: p.PID, Start: uint64(p.Started / Tick)} }

// Bytes are from /proc/PID/io. They are 0 if Err is not 0.
type Bytes struct {
	Read, Chars, Write uint64
	Err                syscall.Errno
}

// OpenFile is an open file of a process. Sockets have a mount of their own.
type OpenFile struct {
	Mount int    // its mount ID
	Inode uint32 // the lower half; 0 where the kernel does not report it (before Linux 5.14)
	Pipe  uint64 // the number of the pipe that it is an end of; 0 for any other file

	Direct bool // it is read and written past the page cache (O_DIRECT)
	Ends
}

// Ends say which ends of a pipe an open file is, and whether it is one that stays open in the programs that the process
// starts or becomes (it lacks O_CLOEXEC).
type Ends struct{ Reads, Writes, Stays bool }

// filesOf asks the reader for open files. To ask as the process that is known costs six calls of the kernel, and is for
// readers with more rights.
func (s *Source) filesOf(key Key, from, limit int) ([]OpenFile, int, error) {
	if s.reader == Reader(s.direct) {
		key.Start = 0
	}
	return s.reader.Files(key, from, limit)
}

// errFormat is the error of a file that does not have the format of Linux.
const errFormat = syscall.EILSEQ

// errno returns the number of an error of a system call; EIO if it has none.
func errno(err error) syscall.Errno {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number
	}
	return syscall.EIO
}

// WithReader makes the source ask another process for what this one may not read. Call it before Add.
func (s *Source) WithReader(r Reader) *Source {
	if s.reader = r; r == nil {
		s.reader = s.direct
	}
	return s
}
