//go:build amd64 || arm64

package helper

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/trust"
)

// program is this program, also after its file was replaced: agent and helpers are of the same version.
const program = "/proc/self/exe"

// keepAll starts the helpers of roles, whose sockets it has from socketFD on, and a spare of itself. It ends with the
// agent. args are its own, for the spare. A keeper that is a spare first waits for the end of its standard input: the
// keeper before holds the other end.
func keepAll(args []string) int {
	root, names := args[1], args[2:]
	_ = unix.CloseRange(uint(socketFD+len(names)), math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // those of the agent, too
	// No process of its user may trace it.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	_, _ = io.Copy(io.Discard, os.Stdin)
	sockets := make([]*os.File, len(names))
	ends := make([]unix.PollFd, len(names))
	for i := range names {
		sockets[i] = os.NewFile(uintptr(socketFD+i), "socket")
		ends[i].Fd = int32(socketFD + i)
	}
	if n, _ := unix.Poll(ends, 0); n > 0 {
		return exitDone // a spare after the end of the agent
	}
	if info, err := os.Stdin.Stat(); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
		for i := range names { // the helpers ended with the keeper before
			report(socketFD+i, "")
		}
	}
	// Helpers end with the thread that starts them: it is theirs alone, and lives as long as this process.
	for i, of := range names {
		go keepHelper(sockets[i], root, of)
	}
	go keepSpare(args, sockets)
	for {
		if n, err := unix.Poll(ends, -1); n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return exitDone // the agent has closed a socket
		}
	}
}

// keepHelper starts the helpers of a role, one after the other.
func keepHelper(socket *os.File, root, of string) {
	runtime.LockOSThread()
	r, found := roleOf(of)
	err := trust.LimitThread(r.needs)
	if !found {
		err = errFrame
	}
	keep(func() string {
		if err != nil {
			return err.Error()
		}
		args := []string{name, root, r.name}
		return await(os.StartProcess(program, args, &os.ProcAttr{ //nolint:gosec // the program is this one
			Dir: "/", Env: []string{}, Files: []*os.File{nil, nil, os.Stderr, socket},
			Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
		}))
	}, func(why string) { report(int(socket.Fd()), why) })
}

// report informs the agent of the end of a helper.
func report(fd int, why string) {
	_ = unix.Sendto(fd, ended(why), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, nil) // the next hello says enough
}

// keepSpare starts spares, one after the other. A spare that cannot start is no reason for less.
func keepSpare(args []string, sockets []*os.File) {
	keep(func() string {
		theirs, ours, err := os.Pipe()
		if err != nil {
			return err.Error()
		}
		defer func() { _, _ = theirs.Close(), ours.Close() }()
		return await(startKeeper(args, theirs, sockets))
	}, func(string) {})
}

// startKeeper starts a keeper.
func startKeeper(args []string, stdin *os.File, sockets []*os.File) (*os.Process, error) {
	args = append([]string{name}, args...)
	return os.StartProcess(program, args, &os.ProcAttr{ //nolint:gosec // the program is this one
		Dir: "/", Env: []string{}, Files: append([]*os.File{stdin, nil, os.Stderr}, sockets...),
	})
}

// cannotStart says why a process does not start, and what to do.
func cannotStart(err error) string {
	var number syscall.Errno
	switch {
	case !errors.As(err, &number):
		return err.Error()
	case number == unix.EAGAIN:
		return fmt.Sprintf("%v: allow more tasks, as by TasksMax= of its unit", number)
	}
	return fmt.Sprintf("%v: look for a denial with journalctl -k", number)
}

// await waits for a process that was started, and returns why it has not; "" if it has, or has given a reason itself.
func await(p *os.Process, err error) (why string) {
	if err != nil {
		return cannotStart(err)
	}
	state, err := p.Wait()
	if err == nil && state.ExitCode() == exitFailed {
		return said
	}
	return ""
}
