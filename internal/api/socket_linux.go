package api

import (
	"net"
	"syscall"
)

// peerPID returns the process that called connect (SO_PEERCRED, unix(7)), in the PID namespace of this process, or 0 if
// the kernel does not report it.
func peerPID(c *net.UnixConn) int {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	_ = raw.Control(func(fd uintptr) { // an error leaves the pid at 0
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
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
