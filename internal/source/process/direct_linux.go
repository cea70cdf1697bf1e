package process

import (
	"cmp"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/procfile"
)

// Direct is a Reader of /proc with the rights of this process. Unlike other Readers it is not safe for concurrent use.
type Direct struct {
	proc string
	io   *procfile.Batch[Key, Bytes]
}

// NewDirect returns a Direct for the processes of a mounted proc, such as "/proc".
func NewDirect(proc string) *Direct {
	d := &Direct{proc: proc}
	d.io = procfile.NewBatch(proc, func(of Key) int { return of.PID }, d.readIO,
		func(Key) Bytes { return Bytes{Err: unix.ETIMEDOUT} })
	return d
}

// Bytes implements Reader. The error is nil. That of a process for which the kernel does not answer is ETIMEDOUT.
func (d *Direct) Bytes(of []Key, into []Bytes) error {
	d.io.Each(of, into)
	return nil
}

// readIO reads the counters of a process, on any goroutine.
func (d *Direct) readIO(of Key, buf []byte) (b Bytes) {
	text, err := kernfile.ReadPiece(d.dir(of.PID)+"/io", buf)
	if err == nil {
		err = d.check(of)
	}
	if err != nil {
		return Bytes{Err: errno(err)}
	}
	var ok bool
	if b.Read, b.Chars, b.Write, ok = ParseIO(text); !ok {
		return Bytes{Err: errFormat}
	}
	return b
}

func (d *Direct) dir(pid int) string { return d.proc + "/" + strconv.Itoa(pid) }

// check returns an error if the PID belongs to another process now. If not, it did not before.
func (d *Direct) check(key Key) error {
	if key.Start == 0 {
		return nil
	}
	var buf [4096]byte
	text, err := kernfile.ReadPiece(d.dir(key.PID)+"/stat", buf[:])
	if err != nil {
		return errno(err)
	}
	switch s, ok := ParseStat(text); {
	case !ok:
		return errFormat
	case s.Start != key.Start:
		return unix.ESRCH
	}
	return nil
}

// Files implements Reader. It reads links only.
func (d *Direct) Files(of Key, from, limit int) (list []OpenFile, files int, err error) {
	type answer struct {
		list  []OpenFile
		files int
	}
	a, err := doFor(d, of, func() (a answer, err error) {
		a.list, a.files, err = filesIn(d.dir(of.PID), from, limit)
		return a, err
	})
	return a.list, a.files, err
}

// SameProgram implements Reader. It reads links only: the file itself may be on a server that does not respond.
func (d *Direct) SameProgram(one, other Key) (bool, error) {
	var programs [2]string
	for i, key := range [...]Key{one, other} {
		program, err := doFor(d, key, func() (string, error) { return os.Readlink(d.dir(key.PID) + "/exe") })
		if err != nil {
			return false, err
		}
		programs[i] = program
	}
	return programs[0] == programs[1], nil
}

// doFor reads what belongs to a process, and returns the number of an error.
func doFor[T any](d *Direct, of Key, read func() (T, error)) (T, error) {
	type answer struct {
		result T
		err    error
	}
	a, err := procfile.Do(d.proc, of.PID, func() (a answer) {
		if a.result, a.err = read(); a.err == nil {
			a.err = d.check(of)
		}
		return a
	})
	if err = cmp.Or(err, a.err); err != nil {
		var none T
		return none, errno(err)
	}
	return a.result, nil
}
