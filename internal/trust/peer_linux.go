package trust

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// Peer is the process at the other end of a unix socket: the one that called connect, or listen (SO_PEERCRED, unix(7)).
type Peer struct {
	PID      int // in our PID namespace; 0 if it is not visible there
	UID, GID uint32
}

// PeerOf returns the process at the other end. The error is errors.ErrUnsupported on
// other systems.
func PeerOf(c *net.UnixConn) (Peer, error) {
	var p Peer
	err := control(c, func(fd int) error {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			p = Peer{max(int(cred.Pid), 0), cred.Uid, cred.Gid}
		}
		return err
	})
	return p, err
}

// Alive returns a function that reports whether the process at the other end of a connection, which has that number,
// lives, and a function to call when that is no longer asked. A number may be another process's by then, so the kernel
// is asked for the process itself: by SO_PEERPIDFD, and before Linux 6.5 by its number.
func Alive(c *net.UnixConn, pid int) (alive func() bool, done func(), err error) {
	fd := -1
	err = control(c, func(socket int) (err error) {
		fd, err = unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		if errors.Is(err, unix.ENOPROTOOPT) {
			fd, err = unix.PidfdOpen(pid, 0)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	alive = func() bool { // a pidfd can be read when its process has ended
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return err == nil && n == 0
	}
	return alive, func() { _ = unix.Close(fd) }, nil
}

func control(c *net.UnixConn, do func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) { err = do(int(fd)) })
	return errors.Join(failed, err)
}
