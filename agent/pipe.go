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

// pipe is one way from the program to one of our own outputs.
type pipe struct {
	read, write *os.File
	to          *os.File
	isTerminal  bool
	exited      atomic.Pointer[time.Time] // when the program did: what is left to read must come soon
	held        bool                      // somebody else still had it open in the end; known when copy has returned
}

// After the program's exit its output ends when nobody has it open any more. A process that was left behind may keep it
// open for days.
const (
	quiet    = time.Second           // for how long nothing may come
	patience = 10 * time.Second      // from then on, only what is there already is passed on
	moment   = 10 * time.Millisecond // in which what is there already has been read
	mostTail = 1 << 20               // bytes of it: the largest pipe that a program can have by itself (pipe(7))
)

// openPipe prepares the way to one of our outputs. Where it is a terminal and no other can be had (a container without
// /dev/pts), the program gets a plain pipe.
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
	// The library has made it blocking, and reads of such a file know no deadline.
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

// resize gives the program's terminal the size of ours, and says whether it had another.
func (p *pipe) resize() (changed bool) {
	if !p.isTerminal {
		return false
	}
	size, err := unix.IoctlGetWinsize(int(p.to.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return false // a terminal without a size is still one
	}
	conn, err := p.read.SyscallConn()
	if err != nil {
		return false
	}
	_ = conn.Control(func(fd uintptr) { // fails when copy has closed it: there is nothing to resize any more
		before, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ)
		if err == nil && *before != *size {
			changed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, size) == nil
		}
	})
	return changed
}

// copy passes everything on before it looks at it. When our own output is gone (a closed pipe, a full disk) it stops
// reading, and the program gets the error that it would have got from it: a broken pipe.
func (p *pipe) copy(line func([]byte)) {
	lines := progress.NewLines(line)
	defer lines.Close()
	defer func() { _ = p.read.Close() }()
	buf := make([]byte, 32<<10)
	for tail := 0; ; {
		late := p.hurry()
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
		if p.held = errors.Is(err, os.ErrDeadlineExceeded) || tail >= mostTail; p.held || err != nil {
			return // io.EOF; EIO where a terminal's last user left
		}
	}
}

// hurry bounds the next read once the program has exited. late says that this was long ago.
func (p *pipe) hurry() (late bool) {
	exited := p.exited.Load()
	if exited == nil {
		return false
	}
	wait := quiet
	if late = time.Since(*exited) > patience; late {
		wait = moment
	}
	_ = p.read.SetReadDeadline(time.Now().Add(wait))
	return late
}

// pass writes all of b. Whoever shares our output (the program, where it is the terminal that is its input too) may have
// set it not to block: then a full one is waited for here.
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
