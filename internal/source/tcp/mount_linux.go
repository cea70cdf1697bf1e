package tcp

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// MountID returns the ID of the mount that all sockets of this machine are on, as in /proc/PID/fdinfo; 0 if it is not
// known.
func MountID() int {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer func() { _ = unix.Close(fd) }()
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if number, found := bytes.CutPrefix(line, []byte("mnt_id:")); found {
			id, _ := strconv.Atoi(string(bytes.TrimSpace(number)))
			return id
		}
	}
	return 0
}

// Namespace returns the inode of this program's network namespace; 0 if it is not known.
func Namespace() uint32 {
	name, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return 0
	}
	number, _ := strconv.ParseUint(strings.Trim(name, "net:[]"), 10, 32)
	return uint32(number)
}
