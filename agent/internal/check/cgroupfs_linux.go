package check

import "golang.org/x/sys/unix"

// isCgroup2 says whether a folder lies in a cgroup v2 file system.
func isCgroup2(folder string) bool {
	var st unix.Statfs_t
	return unix.Statfs(folder, &st) == nil && uint32(st.Type) == unix.CGROUP2_SUPER_MAGIC
}
