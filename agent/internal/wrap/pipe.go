package wrap

import (
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/stallspan/stallspan/agent/internal/heir"
	"github.com/stallspan/stallspan/internal/progress"
)

// pipe copies one of the program's outputs to one of our own.
type pipe struct {
	read, write *os.File
	to          *os.File
	isTerminal  bool
	heir        *heir.Heir                // nil for none
	number      int                       // of this output, for the heir
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

	bufferSize = 32 << 10 // bytes that are passed on at a time
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
func (p *pipe) copy(hooks Hooks) {
	lines := progress.NewLines(hooks.Line)
	defer lines.Close()
	defer func() {
		if !p.held {
			p.heir.Drop(p.number)
		}
		_ = p.read.Close()
	}()
	buf := make([]byte, bufferSize)
	for tail := 0; ; {
		late := p.limitRead()
		n, err := p.read.Read(buf)
		if heir.WriteAll(p.to, buf[:n]) != nil {
			return
		}
		if p.isTerminal {
			hooks.Passed(buf[:n])
		}
		_, _ = lines.Write(buf[:n]) // never fails
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

// leave leaves the output of a process that was left running to the heir. Otherwise that process would die of SIGPIPE
// at its next output, when we have ended. A file or a terminal gets the output, as it would without us. Output to a
// pipe is dropped: its reader waits for our end, and must not wait for that process.
func (p *pipe) leave() {
	info, err := p.to.Stat()
	p.heir.Leave(p.number, err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0)
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
