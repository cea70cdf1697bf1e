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

func control(c *net.UnixConn, do func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) { err = do(int(fd)) })
	return errors.Join(failed, err)
}
