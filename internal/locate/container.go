package locate

import (
	"bytes"
	"path"

	"github.com/stallspan/stallspan/internal/source/cgroup"
)

// A container's ID is of idDigits hexadecimal digits; people and some programs write the first shortDigits.
const (
	idDigits    = 64
	shortDigits = 12
)

// mayBeID looks at the length first: whatever comes as container.id or host.name may be long.
func mayBeID(id string) bool {
	return (len(id) == idDigits || len(id) == shortDigits) && isHex(id)
}

// idOf is the ID of the container whose cgroup is called name; nil when it is no container's. The container managers
// name them, by their drivers "systemd" and "cgroupfs":
//
//	docker-<id>.scope, cri-containerd-<id>.scope, crio-<id>.scope, libpod-<id>.scope, nerdctl-<id>.scope
//	<id>, crio-<id>, libpod-<id>, libpod-payload-<id>, kubepods-pod<uid>.slice:cri-containerd:<id>
//
// The cgroups of programs that watch over a container (libpod-conmon-<id>.scope, crio-conmon-<id>.scope) are not it.
func idOf(name []byte) []byte {
	name = bytes.TrimSuffix(name, []byte(".scope"))
	at := len(name) - idDigits
	if at < 0 {
		return nil
	}
	prefix, id := name[:at], name[at:]
	if at > 0 && prefix[at-1] != '-' && prefix[at-1] != ':' || bytes.Contains(prefix, []byte("conmon")) {
		return nil
	}
	if !isHex(id) {
		return nil
	}
	return id
}

// membership is one line of /proc/PID/cgroup that names a container: the path as far as the container's own cgroup.
type membership struct {
	id, path []byte
	v2       bool
}

// eachContainer calls yield for every container in the text of /proc/PID/cgroup (cgroups(7)), until it returns false. A
// container may be within another, and in cgroup v1 each comes once a hierarchy. own is cgroup.View.Own: the kernel does
// not show the containers that this process is in itself.
func eachContainer(text []byte, own string, yield func(membership) bool) {
	for line := range bytes.Lines(text) {
		line, whole := bytes.CutSuffix(line, []byte{'\n'})
		number, rest, ok1 := bytes.Cut(line, []byte{':'})
		controllers, path, ok2 := bytes.Cut(rest, []byte{':'})
		if !whole || !ok1 || !ok2 || len(path) == 0 || path[0] != '/' {
			continue
		}
		v2 := string(number) == "0" && len(controllers) == 0
		if v2 && len(own) > 1 {
			path = []byte(cgroup.Join(own, string(path)))
		}
		for from := 1; from <= len(path); {
			to := len(path)
			if i := bytes.IndexByte(path[from:], '/'); i >= 0 {
				to = from + i
			}
			if id := idOf(path[from:to]); id != nil && !yield(membership{id, path[:to], v2}) {
				return
			}
			from = to + 1
		}
	}
}

// within finds the container in the text of /proc/PID/cgroup, with its cgroup v2. That is "" where there is none, and
// where our own cgroup namespace does not show the way to it.
func within(text []byte, own, id string) (group string, found bool) {
	eachContainer(text, own, func(m membership) bool {
		if string(m.id) != id {
			return true
		}
		found = true
		if m.v2 {
			group = string(m.path)
		}
		return !m.v2
	})
	if path.Clean(group) != group { // "/../.." above all
		group = ""
	}
	return group, found
}
