package api

import "syscall"

// bornPrivate is a net.ListenConfig.Control. The file that bind creates takes its mode from the inode of the socket. So
// other users can never open it, whatever the umask is, and the umask of the process stays as it is.
func bornPrivate(_, _ string, c syscall.RawConn) error {
	var failed error
	if err := c.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) }); err != nil {
		return err
	}
	return failed
}
