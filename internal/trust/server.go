package trust

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// Folder returns why a folder is not safe for a socket or a lock: who may write it could replace them. It must belong
// to root or our own user, and be closed to other writers. Only root's may be a sticky one, such as /tmp.
func Folder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if own := os.Geteuid(); ok && st.Uid != 0 && int(st.Uid) != own {
		return fmt.Errorf("user %d owns %s and could replace files there: remove it", st.Uid, path)
	}
	sticky := info.Mode()&os.ModeSticky != 0 && ok && st.Uid == 0
	switch others := info.Mode().Perm() & writers; {
	case sticky || others == 0:
		return nil
	case others&0o002 != 0:
		return fmt.Errorf("all users may replace files in %s: run chmod o-w on it", path)
	}
	return fmt.Errorf("its group may replace files in %s: run chmod g-w on it", path)
}

// Dial connects to the server of a unix socket, unless its user is not trusted with what programs announce.
func Dial(ctx context.Context, path string) (*net.UnixConn, error) {
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
	peer, err := PeerOf(socket)
	if err == nil {
		err = server(path, peer.UID, uint32(os.Geteuid()))
	}
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		_ = socket.Close()
		return nil, err
	}
	return socket, nil
}

// server returns why the user who listens on a socket is not trusted. It must be root, our own user, or the owner of
// the socket's folder where root or we have given it that folder, such as /run/stallspan. So that no other user can
// have put a folder of his own there, all folders above belong to root or us. The one directly above is closed to
// others. Higher ones may be sticky, such as /tmp: only its owner can rename a folder there. Links are
// followed where Follow trusts them.
func server(socket string, user, own uint32) error {
	trusted := []uint32{0, own}
	if slices.Contains(trusted, user) {
		return nil
	}
	folder, err := Follow(filepath.Dir(filepath.Clean(socket)))
	if err != nil {
		return err
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || st.Uid != user || info.Mode().Perm()&writers != 0 {
		return unknown(user)
	}
	for above, direct := filepath.Dir(folder), true; ; above, direct = filepath.Dir(above), false {
		info, err := os.Lstat(above)
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		open := info.Mode().Perm()&writers != 0 && (direct || info.Mode()&os.ModeSticky == 0)
		if !ok || !slices.Contains(trusted, st.Uid) || open {
			return unknown(user)
		}
		if above == filepath.Dir(above) {
			return nil
		}
	}
}

func unknown(user uint32) error {
	return fmt.Errorf("user %d listens there, who is neither root nor this user: remove the socket", user)
}
