//go:build amd64 || arm64

package helper

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/trust"
)

// program is this program, also after its file was replaced: agent and helper are of the same version.
const program = "/proc/self/exe"

// keepHelper starts helpers that answer on a socket.
func keepHelper(fd int, r role) error {
	// Helpers end with the thread that starts them.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid dumps of memory: %w", err)
	}
	_ = unix.CloseRange(socketFD+1, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) // what the agent was started with, too
	socket := os.NewFile(uintptr(fd), "socket")
	err := keep(func() (int, error) {
		p, err := start(socket, r.needs, r.name)
		if err != nil {
			return 0, err
		}
		state, err := p.Wait()
		if err != nil {
			return 0, fmt.Errorf("wait for the helper: %w", err)
		}
		return exitStatus(state), nil
	}, func(status int) error {
		return unix.Sendto(fd, ended(status), unix.MSG_NOSIGNAL, nil)
	})
	if errors.Is(err, unix.EPIPE) {
		return nil // the agent is gone
	}
	return err
}

// exitStatus is what a shell would show: 128 and the number of a signal.
func exitStatus(state *os.ProcessState) int {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return state.ExitCode()
}

// start starts this program with an argument, one end of the socket, no environment, and no capabilities but these. It
// ends when the calling thread does.
func start(socket *os.File, needs trust.Set, argument string) (p *os.Process, err error) {
	err = trust.StartWith(needs, func() error {
		p, err = os.StartProcess(program, []string{name, argument}, &os.ProcAttr{
			Dir: "/", Env: []string{}, Files: []*os.File{nil, nil, os.Stderr, socket},
			Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("start the helper: %w", err)
	}
	return p, nil
}
