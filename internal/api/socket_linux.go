package api

import (
	"net"
	"syscall"
)

// peerPID returns the process that called connect, in the PID namespace of this process, or 0 if the kernel does not
// report it.
func peerPID(c *net.UnixConn) int {
	if cred := peer(c); cred != nil {
		return int(cred.Pid)
	}
	return 0
}

// peerUID returns the user of the process at the other end.
func peerUID(c *net.UnixConn) (user uint32, known bool) {
	if cred := peer(c); cred != nil {
		return cred.Uid, true
	}
	return 0, false
}

// peer returns who called connect, or listen (SO_PEERCRED, unix(7)), or nil.
func peer(c *net.UnixConn) (cred *syscall.Ucred) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	_ = raw.Control(func(fd uintptr) { // an error leaves it nil
		cred, _ = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	return cred
}

// bornPrivate is a net.ListenConfig.Control. The file that bind creates takes its mode from the inode of the socket. So
// other users can never open it, whatever the umask is, and the umask of the process stays as it is.
func bornPrivate(_, _ string, c syscall.RawConn) error {
	var failed error
	if err := c.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) }); err != nil {
		return err
	}
	return failed
}
