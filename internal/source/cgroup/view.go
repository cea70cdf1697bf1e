package cgroup

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// View is the cgroup v2 tree below root, as this process sees it. In a container with a cgroup namespace of its own the
// kernel gives all paths as seen from the container's own cgroup: "/../../system.slice/x.service", and "/" for the
// container (cgroup_namespaces(7)). Where the host's tree is mounted below root, a View finds that cgroup in it and
// gives the paths from the top of the tree, as Dir takes them and as the host's own processes see them. Where it
// cannot, as without the host's tree, without a mount of the container's own (which is how it is recognised), or with
// root "" or "/", the paths are as the kernel gives them.
//
// Its methods may be called concurrently.
type View struct {
	root string

	mu    sync.Mutex // held while our own cgroup is looked for
	own   string     // found once: a cgroup v2 cannot be moved, nor a process's namespace change under it
	again time.Time  // when a search that found nothing may be repeated
}

// searchAgain is how long a search that found nothing holds. It costs a few hundred folders, mostly just one file.
const searchAgain = time.Minute

// NewView reads nothing yet. root stands for "/" ("/hostfs" in a container).
func NewView(root string) *View { return &View{root: filepath.Join("/", root)} }

// Own is the path of our cgroup namespace's root from the top of the tree below root, for Join. It is "/" where there
// is nothing to put before a path, and "" where it cannot be told.
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

// ScopeOf is the cgroup v2 path of a process, from the line "0::" of root+"/proc/PID/cgroup": "/" for the top of the
// tree; see View. A process that has ended gives an error that wraps fs.ErrNotExist.
func (v *View) ScopeOf(pid int) (string, error) {
	seen, err := seenScope(v.root, pid)
	if err != nil {
		return "", err
	}
	return Join(v.Own(), seen), nil
}

// firstNamespace is the inode number that the kernel gives to the cgroup namespace in which "/" is the whole machine
// (include/linux/proc_ns.h, PROC_CGROUP_INIT_INO).
const firstNamespace = "cgroup:[4026531835]"

// WholeMachine tells whether a path that ScopeOf gave holds all processes of the machine, and not those of a container
// alone, whose own cgroup is seen as "/" too. What cannot be told is the machine.
func (v *View) WholeMachine(scope string) bool {
	if scope != "/" {
		return false
	}
	if name, err := os.Readlink("/proc/self/ns/cgroup"); err != nil || name == firstNamespace {
		return true
	}
	return v.Own() != "" && isTop(v.root)
}

// isTop tells whether the tree below root has the top of all. Every other cgroup has a cgroup.type.
func isTop(root string) bool {
	top, _, err := findTree(root)
	if err != nil {
		return false
	}
	_, err = os.Lstat(filepath.Join(top.point, "cgroup.procs"))
	_, typeErr := os.Lstat(filepath.Join(top.point, "cgroup.type"))
	return err == nil && os.IsNotExist(typeErr)
}

// Join gives a path as /proc/PID/cgroup shows it, which begins at our cgroup namespace's root, from the top of the tree
// in which own is that root's path. What it cannot place stays as it is: any path when own is "", one that leaves the
// tree, and one that no kernel prints. Of these Dir refuses those with "..".
func Join(own, seen string) string {
	if len(own) < 2 || seen == "" {
		return seen // nothing is known, or there is nothing to put before it
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
