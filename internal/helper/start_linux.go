//go:build amd64 || arm64

package helper

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/trust"
)

// variable holds the descriptor of the socket and the process ID of the keeper, from Separate to Inherit.
const variable = "STALLSPAN_HELPER"

// Separate starts a helper and gives up all capabilities but those to keep: it starts this program again, and does not
// return. It returns nil without an effect if this process has no capabilities for a helper.
func Separate(keep trust.Set) error {
	if trust.Granted()&trust.Processes != trust.Processes {
		return nil
	}
	runtime.LockOSThread() // the keeper ends with this thread, which execve(2) keeps
	defer runtime.UnlockOSThread()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make a socket for the helper: %w", err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "socket")
	keeper, err := start(theirs, keepRole)
	_ = theirs.Close()
	if err != nil {
		return err
	}
	if err := awaitHello(ends[0]); err != nil {
		_ = unix.Close(ends[0])
		_ = keeper.Kill() // and with it the helper; it would try again first
		_, _ = keeper.Wait()
		return err
	}
	if _, err := unix.FcntlInt(uintptr(ends[0]), unix.F_SETFD, 0); err != nil {
		return fmt.Errorf("keep the helper's socket: %w", err)
	}
	if err := os.Setenv(variable, fmt.Sprintf("%d:%d", ends[0], keeper.Pid)); err != nil {
		return err
	}
	return trust.Needs(keep)
}

// awaitHello waits for the helper.
func awaitHello(fd int) error {
	limit := unix.NsecToTimeval(int64(startWait))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return fmt.Errorf("await the helper: %w", err)
	}
	var buf [maxAnswer]byte
	n, _, err := unix.Recvfrom(fd, buf[:], 0)
	if err != nil {
		return fmt.Errorf("the helper does not start within %v: %w", startWait, err)
	}
	if o, _, _, err := split(buf[:n]); err != nil || o != opHello {
		return errors.New("the helper ends at its start: see the line before, or start the agent without capabilities")
	}
	return nil
}

// Inherit returns the Client of the helper that Separate has started, or nil.
func Inherit() (*Client, error) {
	value, given := os.LookupEnv(variable)
	if !given {
		return nil, nil
	}
	_ = os.Unsetenv(variable) // programs that we start have nothing to do with it
	text, keeper, _ := strings.Cut(value, ":")
	fd, err1 := strconv.Atoi(text)
	pid, err2 := strconv.Atoi(keeper)
	if err := errors.Join(err1, err2); err != nil || fd <= 2 || pid <= 1 {
		return nil, fmt.Errorf("unset %s, it is for the agent itself", variable)
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_SEQPACKET {
		return nil, fmt.Errorf("unset %s, it is for the agent itself", variable)
	}
	unix.CloseOnExec(fd)
	file := os.NewFile(uintptr(fd), "helper")
	defer func() { _ = file.Close() }()
	conn, err := net.FileConn(file) // a copy
	if err != nil {
		return nil, fmt.Errorf("use the helper's socket: %w", err)
	}
	c := NewClient(conn)
	c.reap = func() { reap(pid) }
	return c, nil
}

// reap waits for the keeper, which ends with the socket.
func reap(pid int) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return
	}
	late := time.AfterFunc(answerWait, func() { _ = p.Kill() })
	defer late.Stop()
	_, _ = p.Wait()
}
