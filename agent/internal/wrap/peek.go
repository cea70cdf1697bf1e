package wrap

import (
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// peeked reads a program's output without taking it: tee(2) copies what is in a pipe, and the original stays there
// until the copy has been passed on. So the heir finds it if we are killed meanwhile. At worst it passes on a second
// time what we wrote in our last moment.
//
// A terminal cannot be copied from. Its output moves to a pipe first, which the heir shares.
type peeked struct {
	from   syscall.RawConn
	middle *duct // where a terminal's output moves to; nil for a pipe
	copied *duct
	null   int
	to     *os.File
	mode   os.FileMode // of to
}

// errNoCopy means that the kernel cannot copy this kind of file.
var errNoCopy = errors.New("output cannot be copied")

// duct is a pipe of this process.
type duct struct{ read, write *os.File }

func newDuct() (*duct, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &duct{read, write}, nil
}

func (d *duct) close() {
	if d != nil {
		_ = d.read.Close()
		_ = d.write.Close()
	}
}

// newPeeked returns nil where output cannot be peeked at.
func newPeeked(from, to *os.File, isTerminal bool) *peeked {
	p := &peeked{null: -1, to: to}
	info, err := to.Stat()
	if err != nil {
		return nil
	}
	p.mode = info.Mode()
	if p.from, err = from.SyscallConn(); err != nil {
		return nil
	}
	if isTerminal {
		p.middle, err = newDuct()
	}
	if err == nil {
		p.copied, err = newDuct()
	}
	if err == nil {
		p.null, err = unix.Open(os.DevNull, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		p.close()
		return nil
	}
	return p
}

// pipeBuf is the size of a write to a pipe that is done as a whole or not at all (PIPE_BUF, pipe(7)): a kill leaves
// none half done.
const pipeBuf = 4 << 10

// atOnce is how many of n bytes to write at a time. A kill that comes while a write waits for its reader would leave
// it half done, and the heir would repeat that half.
func (p *peeked) atOnce(n int) int {
	if p.mode.IsRegular() {
		return n
	}
	if p.mode&os.ModeNamedPipe != 0 {
		if waiting, err := unix.IoctlGetInt(int(p.to.Fd()), unix.TIOCINQ); err == nil && waiting == 0 {
			return n // it is empty, and n fits
		}
	}
	return min(n, pipeBuf)
}

// moved is what the heir reads before the program's terminal, or nil.
func (p *peeked) moved() *os.File {
	if p == nil || p.middle == nil {
		return nil
	}
	return p.middle.read
}

// next waits for output and returns a copy of it. Call passed for all of it before the next call.
func (p *peeked) next(buf []byte) (n int, err error) {
	waited := p.from.Read(func(fd uintptr) bool {
		if p.middle != nil {
			n, err = splice(int(fd), p.middle.write, len(buf))
		} else {
			n, err = tee(int(fd), p.copied.write, len(buf))
		}
		return !errors.Is(err, unix.EAGAIN)
	})
	switch {
	case waited != nil:
		return 0, waited
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		return 0, errNoCopy
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	if p.middle != nil {
		err = control(p.middle.read, func(fd int) (err error) {
			n, err = tee(fd, p.copied.write, n)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return io.ReadFull(p.copied.read, buf[:n])
}

// passed takes the first n bytes of what next has returned.
func (p *peeked) passed(n int) {
	take := func(fd int) error {
		for n > 0 {
			taken, err := unix.Splice(fd, nil, p.null, nil, n, unix.SPLICE_F_NONBLOCK)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if err != nil || taken == 0 {
				return err
			}
			n -= int(taken)
		}
		return nil
	}
	if p.middle != nil {
		_ = control(p.middle.read, take)
	} else {
		_ = p.from.Control(func(fd uintptr) { _ = take(int(fd)) })
	}
}

func (p *peeked) close() {
	p.middle.close()
	p.copied.close()
	if p.null >= 0 {
		_ = unix.Close(p.null)
		p.null = -1
	}
}

// control calls do with the descriptor of a file, which stays non-blocking.
func control(file *os.File, do func(fd int) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	if failed := conn.Control(func(fd uintptr) { err = do(int(fd)) }); failed != nil {
		return failed
	}
	return err
}

// tee copies up to n bytes from one pipe to another.
func tee(from int, to *os.File, n int) (copied int, err error) {
	return into(to, func(fd int) (int64, error) { return unix.Tee(from, fd, n, unix.SPLICE_F_NONBLOCK) })
}

// splice moves up to n bytes to a pipe.
func splice(from int, to *os.File, n int) (moved int, err error) {
	return into(to, func(fd int) (int64, error) { return unix.Splice(from, nil, fd, nil, n, unix.SPLICE_F_NONBLOCK) })
}

// into calls a system call that writes to a pipe, again where a signal has interrupted it.
func into(to *os.File, call func(fd int) (int64, error)) (done int, err error) {
	err = control(to, func(fd int) error {
		for {
			n, err := call(fd)
			if !errors.Is(err, unix.EINTR) {
				done = int(n)
				return err
			}
		}
	})
	return done, err
}
