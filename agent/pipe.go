package agent

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/stallspan/stallspan/agent/internal/progress"
)

// pipe copies one of the program's outputs to one of our own.
type pipe struct {
	read, write *os.File
	to          *os.File
	isTerminal  bool
	exited      atomic.Pointer[time.Time] // when the program exited: reads are limited from then on
	held        bool                      // another process had it open at the end; set when copy returns
}

// After the program's exit its output ends when the last process closes it. A process that was left running may keep it
// open for days.
const (
	maxSilence = time.Second           // how long to wait for more
	maxWait    = 10 * time.Second      // after this time, only buffered output is passed on
	drainTime  = 10 * time.Millisecond // enough to read buffered output
	maxTail    = 1 << 20               // bytes of it: the largest pipe that an unprivileged program can set (pipe(7))
)

// openPipe opens a pipe to one of our outputs. If that is a terminal the program gets a terminal, or a plain pipe where
// none can be made (a container without /dev/pts).
func openPipe(to *os.File) (*pipe, error) {
	p := &pipe{to: to}
	if term.IsTerminal(int(to.Fd())) && p.openTerminal() == nil {
		p.isTerminal = true
		p.resize()
		return p, nil
	}
	var err error
	p.read, p.write, err = os.Pipe()
	return p, err
}

func (p *pipe) openTerminal() error {
	master, slave, err := pty.Open()
	if err != nil {
		return err
	}
	defer func() { _ = master.Close() }()
	// The library has made it blocking, and reads of a blocking file take no deadline.
	fd, err := unix.FcntlInt(master.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err == nil {
		_, err = term.MakeRaw(int(slave.Fd()))
	}
	if err != nil {
		_ = slave.Close()
		return err
	}
	p.read, p.write = os.NewFile(uintptr(fd), master.Name()), slave
	return nil
}

// resize gives the program's terminal the size of ours, and reports whether it changed.
func (p *pipe) resize() (changed bool) {
	if !p.isTerminal {
		return false
	}
	size, err := unix.IoctlGetWinsize(int(p.to.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return false // a terminal may have no size
	}
	conn, err := p.read.SyscallConn()
	if err != nil {
		return false
	}
	_ = conn.Control(func(fd uintptr) { // fails after copy has closed it
		before, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ)
		if err == nil && *before != *size {
			changed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) == nil
		}
	})
	return changed
}

// copy passes output on before it reads the lines in it. If our own output fails (a closed pipe, a full disk) it stops
// reading, and the program gets the error that it would have got without us: a broken pipe.
func (p *pipe) copy(line func([]byte)) {
	lines := progress.NewLines(line)
	defer lines.Close()
	defer func() { _ = p.read.Close() }()
	buf := make([]byte, 32<<10)
	for tail := 0; ; {
		late := p.limitRead()
		n, err := p.read.Read(buf)
		if n > 0 {
			if pass(p.to, buf[:n]) != nil {
				return
			}
			_, _ = lines.Write(buf[:n]) // never fails
		}
		if late {
			tail += n
		}
		if p.held = errors.Is(err, os.ErrDeadlineExceeded) || tail >= maxTail; p.held || err != nil {
			if p.held {
				p.leave()
			}
			return // io.EOF; EIO when the last process has closed a terminal
		}
	}
}

// limitRead sets a deadline for the next read after the program's exit. late is set from maxWait after it.
func (p *pipe) limitRead() (late bool) {
	exited := p.exited.Load()
	if exited == nil {
		return false
	}
	wait := maxSilence
	if late = time.Since(*exited) > maxWait; late {
		wait = drainTime
	}
	_ = p.read.SetReadDeadline(time.Now().Add(wait))
	return late
}

// pass writes all of b. A program that shares our terminal may have made it non-blocking. Then pass waits while it is
// full.
func pass(to *os.File, b []byte) error {
	for {
		n, err := to.Write(b)
		if b = b[n:]; !errors.Is(err, unix.EAGAIN) {
			return err
		}
		wait := []unix.PollFd{{Fd: int32(to.Fd()), Events: unix.POLLOUT}}
		if _, err := unix.Poll(wait, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return errors.Join(io.ErrShortWrite, err)
		}
	}
}
