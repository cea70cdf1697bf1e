package cgroup

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// View is the cgroup v2 tree below root. In a container with its own cgroup namespace, the kernel shows all paths
// relative to the container's cgroup: "/../../system.slice/x.service", and "/" for the container
// (cgroup_namespaces(7)). If the host's tree is mounted below root, a View finds that cgroup in it and returns paths
// from the top of the tree, as Dir takes them and as processes of the host see them. Otherwise paths stay as the kernel
// shows them: without the host's tree, without the container's own mount, by which the cgroup is recognized, or with
// root "" or "/".
//
// It is safe for concurrent use.
type View struct {
	root string

	mu    sync.Mutex // held during the search for our own cgroup
	own   string     // found once: neither a cgroup v2 nor the namespace of a process can move
	again time.Time  // time of the next search
}

// searchAgain is the time until the next search after a failure. A search reads a few hundred folders.
const searchAgain = time.Minute

// NewView returns a view of the machine with "/" at root ("/hostfs" in a container).
func NewView(root string) *View { return &View{root: filepath.Join("/", root)} }

// Own returns the path of our cgroup namespace's root from the top of the tree below root, for Join. It is "/" if paths
// need no prefix, and "" if it is not known.
func (v *View) Own() string {
	if v.root == "/" {
		return "/"
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if now := time.Now(); v.own == "" && !now.Before(v.again) {
		v.own = findOwn(v.root)
		v.again = now.Add(searchAgain)
	}
	return v.own
}

// ScopeOf returns the cgroup v2 path of a process, from the line "0::" of root+"/proc/PID/cgroup"; "/" is the top of
// the tree. The error for a process that has ended wraps fs.ErrNotExist.
func (v *View) ScopeOf(pid int) (string, error) {
	seen, err := seenScope(v.root, pid)
	if err != nil {
		return "", err
	}
	return Join(v.Own(), seen), nil
}

// firstNamespace is the initial cgroup namespace, with the inode number PROC_CGROUP_INIT_INO (include/linux/proc_ns.h).
const firstNamespace = "cgroup:[4026531835]"

// WholeMachine reports whether a path of ScopeOf contains all processes of the machine, and not only those of a
// container, whose own cgroup is also "/". If that is not known, it reports true.
func (v *View) WholeMachine(scope string) bool {
	if scope != "/" {
		return false
	}
	if name, err := os.Readlink("/proc/self/ns/cgroup"); err != nil || name == firstNamespace {
		return true
	}
	return v.Own() != "" && isTop(v.root)
}

// isTop reports whether the tree below root includes the root cgroup. All other cgroups have a cgroup.type.
func isTop(root string) bool {
	top, _, err := findTree(root)
	if err != nil {
		return false
	}
	_, err = os.Lstat(filepath.Join(top.point, "cgroup.procs"))
	_, typeErr := os.Lstat(filepath.Join(top.point, "cgroup.type"))
	return err == nil && os.IsNotExist(typeErr)
}

// Join converts a path of /proc/PID/cgroup, which starts at the root of our cgroup namespace, to a path from the top of
// the tree, where own is the path of that root. It returns the path unchanged if own is "", if the path leaves the
// tree, or if it is invalid. Dir rejects such a path with "..".
func Join(own, seen string) string {
	if len(own) < 2 || seen == "" {
		return seen // not known, or no prefix
	}
	at, rest := own, seen
	for rest == "/.." || strings.HasPrefix(rest, "/../") {
		if at == "" {
			return seen
		}
		at, rest = at[:strings.LastIndexByte(at, '/')], rest[len("/.."):]
	}
	switch {
	case rest == "" || rest == "/":
		return "/" + strings.TrimPrefix(at, "/")
	case path.Clean(rest) != rest || rest[0] != '/':
		return seen
	}
	return at + rest
}
