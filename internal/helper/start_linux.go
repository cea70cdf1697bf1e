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

// variable holds, for each role, the descriptor of the socket and the process ID of the keeper, from Separate to
// Inherit: "read=3:41 trace=4:42".
const variable = "STALLSPAN_HELPER"

// Separate starts a helper for each role that this process has the capabilities for, and gives up all capabilities but
// those to keep: it starts this program again, and does not return. It returns nil without an effect for no role.
func Separate(keep trust.Set) error {
	runtime.LockOSThread() // the keepers end with this thread, which execve(2) keeps
	defer runtime.UnlockOSThread()
	var started []string
	for _, r := range roles {
		if trust.Granted()&r.needs != r.needs {
			continue
		}
		fd, keeper, err := separate(r)
		if err != nil {
			return err // the program ends, and with it the keepers
		}
		started = append(started, fmt.Sprintf("%s=%d:%d", r.name, fd, keeper))
	}
	if len(started) == 0 {
		return nil
	}
	if err := os.Setenv(variable, strings.Join(started, " ")); err != nil {
		return err
	}
	return trust.Needs(keep)
}

// separate starts the helper of a role. It returns our end of its socket, and its keeper.
func separate(r role) (fd, keeper int, err error) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("make a socket for the helper: %w", err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "socket")
	p, err := start(theirs, r.needs, keepPrefix+r.name)
	_ = theirs.Close()
	if err != nil {
		_ = unix.Close(ends[0])
		return 0, 0, err
	}
	if err := awaitHello(ends[0]); err != nil {
		_ = unix.Close(ends[0])
		_ = p.Kill() // and with it the helper; it would try again first
		_, _ = p.Wait()
		return 0, 0, err
	}
	if _, err := unix.FcntlInt(uintptr(ends[0]), unix.F_SETFD, 0); err != nil {
		return 0, 0, fmt.Errorf("keep the helper's socket: %w", err)
	}
	return ends[0], p.Pid, nil
}

// awaitHello waits for the helper.
func awaitHello(fd int) error {
	limit := unix.NsecToTimeval(int64(startWait))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return fmt.Errorf("await the helper: %w", err)
	}
	var buf [maxAnswer]byte
	n, _, err := unix.Recvfrom(fd, buf[:], 0)
	for errors.Is(err, unix.EINTR) { // a socket with a time limit is not read again after a signal
		n, _, err = unix.Recvfrom(fd, buf[:], 0)
	}
	if err != nil {
		return fmt.Errorf("the helper does not start within %v: %w", startWait, err)
	}
	if o, _, _, err := split(buf[:n]); err != nil || o != opHello {
		return errors.New("the helper ends at its start: see the line before, or start the agent without capabilities")
	}
	return nil
}

// Inherit returns the helpers that Separate has started.
func Inherit() (h Helpers, err error) {
	value, given := os.LookupEnv(variable)
	if !given {
		return h, nil
	}
	_ = os.Unsetenv(variable) // programs that we start have nothing to do with it
	defer func() {
		if err != nil {
			h.Close()
			h, err = Helpers{}, fmt.Errorf("unset %s, it is for the agent itself", variable)
		}
	}()
	for one := range strings.FieldsSeq(value) {
		role, text, _ := strings.Cut(one, "=")
		socket, keeper, _ := strings.Cut(text, ":")
		fd, err1 := strconv.Atoi(socket)
		pid, err2 := strconv.Atoi(keeper)
		if err := errors.Join(err1, err2); err != nil || fd <= 2 || pid <= 1 {
			return h, errFrame
		}
		if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_SEQPACKET {
			return h, errFrame
		}
		unix.CloseOnExec(fd)
		switch {
		case role == roles[0].name && h.Reader == nil:
			if h.Reader, err = inheritReader(fd); err != nil {
				return h, err
			}
			h.Reader.reap = func() { reap(pid) }
		case role == roles[1].name && h.Tracer == nil:
			h.Tracer = newTracer(fd)
			h.Tracer.reap = func() { reap(pid) }
		default:
			return h, errFrame
		}
	}
	return h, nil
}

func inheritReader(fd int) (*Client, error) {
	file := os.NewFile(uintptr(fd), "helper")
	defer func() { _ = file.Close() }()
	conn, err := net.FileConn(file) // a copy
	if err != nil {
		return nil, err
	}
	return NewClient(conn), nil
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
