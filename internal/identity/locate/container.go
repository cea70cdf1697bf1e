package locate

import (
	"bytes"
	"path"

	"github.com/stallspan/stallspan/internal/source/cgroup"
)

// A container's ID has idDigits hexadecimal digits; people and some programs write the first shortDigits.
const (
	idDigits    = 64
	shortDigits = 12
)

// mayBeID reports whether id has the form of a container ID. It checks the length first, because any text may arrive.
func mayBeID(id string) bool {
	return (len(id) == idDigits || len(id) == shortDigits) && isHex(id)
}

// ContainerID returns the ID of the container to which a cgroup of that name belongs, or "" for none.
func ContainerID(name string) string { return string(idOf([]byte(name))) }

// idOf returns the container ID in the name of a cgroup; nil if it is not the cgroup of a container. The container
// managers use these names, with their drivers "systemd" and "cgroupfs":
//
//	docker-<id>.scope, cri-containerd-<id>.scope, crio-<id>.scope, libpod-<id>.scope, nerdctl-<id>.scope
//	<id>, crio-<id>, libpod-<id>, libpod-payload-<id>, kubepods-pod<uid>.slice:cri-containerd:<id>
//
// The cgroups of programs that supervise a container (libpod-conmon-<id>.scope, crio-conmon-<id>.scope) do not count.
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

// membership is one line of /proc/PID/cgroup that names a container: the path up to the container's own cgroup.
type membership struct {
	id, path    []byte
	controllers string // "" for cgroup v2
}

// eachContainer calls yield for every container in the text of /proc/PID/cgroup (cgroups(7)), until it returns false. A
// container may be inside another, and in cgroup v1 there is one line per hierarchy. own is cgroup.View.Own: the kernel
// does not show the containers of this process itself.
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
			if id := idOf(path[from:to]); id != nil && !yield(membership{id, path[:to], string(controllers)}) {
				return
			}
			from = to + 1
		}
	}
}

// within finds the container in the text of /proc/PID/cgroup, with its cgroup v2. The cgroup is "" without cgroup v2,
// and if it is not visible from our own cgroup namespace.
func within(text []byte, own, id string) (group string, found bool) {
	eachContainer(text, own, func(m membership) bool {
		if string(m.id) != id {
			return true
		}
		found = true
		if m.controllers == "" {
			group = string(m.path)
		}
		return m.controllers != ""
	})
	if path.Clean(group) != group { // "/../.." above all
		group = ""
	}
	return group, found
}
