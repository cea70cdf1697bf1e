package trust

import (
	"fmt"
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

// Server returns why the user who listens on a socket is not trusted. It must be root, our own user, or the owner of
// the socket's folder where only root can have given it that folder, such as /run/stallspan.
func Server(socket string, user uint32) error {
	if slices.Contains([]uint32{0, uint32(os.Geteuid())}, user) {
		return nil
	}
	folder, err := Follow(filepath.Dir(socket))
	if err != nil {
		return err
	}
	for above := filepath.Dir(folder); ; above = filepath.Dir(above) {
		info, err := os.Lstat(above)
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || st.Uid != 0 || info.Mode().Perm()&writers != 0 {
			return unknown(user)
		}
		if above == filepath.Dir(above) {
			break
		}
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != user || info.Mode().Perm()&writers != 0 {
		return unknown(user)
	}
	return nil
}

func unknown(user uint32) error {
	return fmt.Errorf("user %d listens there, who is neither root nor this user: remove the socket", user)
}
