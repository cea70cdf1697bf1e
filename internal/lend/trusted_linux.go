package lend

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// dialTrusted connects to a server that may be trusted with what a job does, and not to invent it.
func dialTrusted(ctx context.Context, path string) (net.Conn, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	socket, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, errors.New("it is no unix socket")
	}
	cred, pidfd, err := peerOf(socket)
	if pidfd >= 0 {
		_ = unix.Close(pidfd)
	}
	if err == nil && !trusted(path, cred.Uid, uint32(os.Geteuid())) {
		err = fmt.Errorf("user %d listens there, who is neither root nor this user: remove the socket", cred.Uid)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// trusted reports whether a server's user is root, this user, or the owner of the socket's folder where root gave it: a
// folder such as /run/stallspan, in one where only root can make it.
func trusted(path string, server, self uint32) bool {
	if server == 0 || server == self {
		return true
	}
	folder := filepath.Dir(filepath.Clean(path))
	var given, above unix.Stat_t
	if unix.Lstat(folder, &given) != nil || unix.Lstat(filepath.Dir(folder), &above) != nil {
		return false
	}
	const othersWrite = unix.S_IWGRP | unix.S_IWOTH
	return above.Mode&unix.S_IFMT == unix.S_IFDIR && above.Uid == 0 && above.Mode&othersWrite == 0 &&
		given.Mode&unix.S_IFMT == unix.S_IFDIR && given.Uid == server
}
