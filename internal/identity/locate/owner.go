package locate

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// Client returns whose a process is: its container or its user, as in window.Window. It is "" for this program's user,
// and "an unknown process" where the process is gone or not known.
func (l *Locator) Client(pid int) string {
	if pid <= 0 {
		return unknownClient
	}
	if id := ContainerOf(l.root, l.groups.Own(), pid); id != "" {
		return "container " + id
	}
	info, err := os.Stat(filepath.Join(l.proc, strconv.Itoa(pid)))
	if err != nil {
		return unknownClient
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return unknownClient
	case int(owner.Uid) == os.Geteuid():
		return ""
	}
	return "uid " + strconv.Itoa(int(owner.Uid))
}

// owners are buffers for files: the API needs one for each connection.
var owners sync.Pool

const unknownClient = "an unknown process"

// ContainerOf returns the first digits of the ID of the container that a process is in, or "" for none. Of a container
// inside another it is the outer one: programs in it cannot choose its name. own is cgroup.View.Own.
func ContainerOf(root, own string, pid int) (id string) {
	buf, ok := owners.Get().(*[maxBytes]byte)
	if !ok {
		buf = new([maxBytes]byte)
	}
	defer owners.Put(buf)
	text := read(procOf(root), pid, "cgroup", buf[:])
	eachContainer(text, own, func(m membership) bool {
		id = string(m.id[:shortDigits])
		return false
	})
	return id
}
