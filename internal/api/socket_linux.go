package api

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// peerPID asks for the process at the other end (SO_PEERCRED, unix(7)): the one that called connect, in our own PID
// namespace. It is 0 where the kernel does not say.
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

// bornPrivate is a net.ListenConfig.Control. The file that bind makes takes its mode from the socket's own inode, so
// the file is never open to others, whatever the umask is and without touching it for the other threads.
func bornPrivate(_, _ string, c syscall.RawConn) error {
	var failed error
	if err := c.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) }); err != nil {
		return err
	}
	return failed
}

// lockFolder keeps other servers from taking over a socket in the same folder at the same moment. The lock is on the
// folder itself, so no file stays behind, and it ends with the process at the latest. A file system that has no such
// locks goes without.
func lockFolder(dir string) (unlock func(), err error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("the socket's folder cannot be opened, set %s to a path elsewhere: %w", SocketVariable, err)
	}
	for range 200 { // 2 s: a holder needs milliseconds
		err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return func() { _ = folder.Close() }, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = folder.Close()
	return nil, fmt.Errorf("another program keeps the folder %s locked: set %s to a path elsewhere", dir, SocketVariable)
}
