//go:build !linux

package trust

import (
	"errors"
	"net"
	"os"
)

// Elevated reports whether the program's file gave this process rights that its user lacks.
func Elevated() bool { return os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() }

// Granted returns no capabilities.
func Granted() Set { return None }

// Privileged reports whether this process has more rights than others of its user.
func Privileged() bool { return Elevated() }

// MayTrace reports whether this process may read all that the kernel shows of others' processes.
func MayTrace() bool { return os.Geteuid() == 0 }

// Needs refuses to go on with rights that the program's file gave it.
func Needs(Set) error {
	if Elevated() {
		return errors.New("remove the setuid and setgid bits of this program")
	}
	return nil
}

// Peer is the process at the other end of a unix socket.
type Peer struct {
	PID      int
	UID, GID uint32
}

// PeerOf returns errors.ErrUnsupported: only Linux shows the process at the other end here.
func PeerOf(*net.UnixConn) (Peer, error) { return Peer{}, errors.ErrUnsupported }
