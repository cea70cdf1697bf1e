package check

import (
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// othersOwn reports whether a file belongs to another user.
func othersOwn(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) != os.Geteuid()
}

// mayConnect names who may connect, from the owner and the mode of a socket.
func mayConnect(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "only its owner may"
	}
	who := "only user " + userName(st.Uid)
	if info.Mode().Perm()&0o020 != 0 {
		who += " and group " + groupName(st.Gid)
	}
	return who + " may"
}

func userName(id uint32) string {
	text := strconv.FormatUint(uint64(id), 10)
	if u, err := user.LookupId(text); err == nil {
		return u.Username
	}
	return text
}

func groupName(id uint32) string {
	text := strconv.FormatUint(uint64(id), 10)
	if g, err := user.LookupGroupId(text); err == nil {
		return g.Name
	}
	return text
}
