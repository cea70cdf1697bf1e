// Package cgroup finds the cgroup v2 of a process and its folder (Documentation/admin-guide/cgroup-v2.rst).
package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/mount"
)

// ScopeOf returns the cgroup v2 path of a process. For many processes, use a View.
func ScopeOf(root string, pid int) (string, error) { return NewView(root).ScopeOf(pid) }

// seenScope returns that path as the kernel shows it to this process.
func seenScope(root string, pid int) (string, error) {
	path := filepath.Join("/", root, "proc", strconv.Itoa(pid), "cgroup")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the cgroup of process %d, check that it runs: %w", pid, err)
	}
	scope, ok := parseScope(text)
	if !ok {
		return "", fmt.Errorf("process %d is in no cgroup v2, so its pressure is that of the host: "+
			"mount one (mount -t cgroup2 none /sys/fs/cgroup/unified)", pid)
	}
	return scope, nil
}

// parseScope returns the path of the line "0::/path". Other lines are for cgroup v1.
func parseScope(text []byte) (string, bool) {
	for line := range bytes.Lines(text) {
		path, ok := bytes.CutPrefix(bytes.TrimSuffix(line, []byte{'\n'}), []byte("0::"))
		if ok && len(path) > 0 && path[0] == '/' {
			return string(path), true
		}
	}
	return "", false
}

// Mountpoint returns the folder of the cgroup v2 tree: /sys/fs/cgroup, or /sys/fs/cgroup/unified on hybrid systems. It
// is below root if the host is mounted there.
func Mountpoint(root string) (string, error) {
	found, _, err := findTree(filepath.Join("/", root))
	return found.point, err
}

// tree is a mount of the cgroup v2 tree.
type tree struct {
	point string // the folder
	above int    // levels of its top above the root of our cgroup namespace, or unknown
}

const unknown = -1

// findTree returns the tree and all mounts.
func findTree(root string) (tree, []sample.Mount, error) {
	file, err := os.Open(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return tree{}, nil, fmt.Errorf("cannot find cgroup v2, check that /proc is mounted: %w", err)
	}
	defer file.Close()
	mounts, err := mount.Parse(file)
	if found := chooseTree(root, mounts); found.point != "" {
		return found, mounts, nil // also with lines that cannot be parsed
	}
	if err != nil {
		return tree{}, nil, fmt.Errorf("cannot find cgroup v2: %w", err)
	}
	return tree{}, nil, errors.New("cgroup v2 is not mounted completely: " +
		"mount it with mount -t cgroup2 none /sys/fs/cgroup/unified")
}

// chooseTree selects a mount of the whole tree. A point below root is a mount of the host's tree in this container and
// needs no prefix; of several, that of the host starts furthest up. Other points are paths of a process with its "/" at
// root.
func chooseTree(root string, mounts []sample.Mount) tree {
	below, found := tree{above: unknown}, tree{}
	for _, m := range mounts {
		above := levelsAbove(m.Root)
		if m.Type != "cgroup2" || above == unknown {
			continue
		}
		if root != "/" && strings.HasPrefix(m.Point, root+"/") {
			if above > below.above {
				below = tree{m.Point, above}
			}
			continue
		}
		if point := filepath.Join(root, m.Point); found.point == "" && above == 0 && isFolder(point) {
			found = tree{point, unknown}
			if root == "/" {
				found.above = 0
			}
		}
	}
	if below.point != "" {
		return below
	}
	return found
}

// levelsAbove returns how many levels a mount starts above the root of our cgroup namespace, by its root in mountinfo:
// "/" is that root, "/../.." two levels above (cgroup_namespaces(7)). It returns unknown for other roots.
func levelsAbove(mountRoot string) int {
	if mountRoot == "/" {
		return 0
	}
	levels := strings.Count(mountRoot, "/..")
	if mountRoot == "" || len(mountRoot) != levels*len("/..") {
		return unknown
	}
	return levels
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Dir returns the folder of a cgroup by its path as in /proc/PID/cgroup. The cgroup need not exist.
func Dir(root, scope string) (string, error) {
	if !strings.HasPrefix(scope, "/") || slices.Contains(strings.Split(scope, "/"), "..") {
		return "", fmt.Errorf("%q is not the path of a cgroup in this namespace: "+
			"give one with a leading / and without .., as in /proc/PID/cgroup: %w", scope, fs.ErrInvalid)
	}
	point, err := Mountpoint(root)
	if err != nil {
		return "", err
	}
	return filepath.Join(point, scope), nil
}

// maxGroups bounds a search. A node with 100 pods has about 500 cgroups.
const maxGroups = 1 << 15

// findOwn finds the root of our cgroup namespace in the tree below root: see View.Own.
func findOwn(root string) string {
	top, mounts, err := findTree(root)
	switch {
	case err != nil:
		return ""
	case top.above == 0:
		return "/" // the same as our namespace
	}
	for _, m := range mounts {
		if m.Type != "cgroup2" || m.Root != "/" || strings.HasPrefix(m.Point, root+"/") {
			continue
		}
		own, err := os.Stat(m.Point)
		if err != nil {
			continue
		}
		if found := search(top, own); found != "" {
			return found
		}
	}
	return ""
}

// search finds the folder of own in the tree, by device and inode: all mounts of cgroup v2 are one file system. It goes
// down to the level of own. It returns "" if own is not found.
func search(top tree, own fs.FileInfo) string {
	if here, err := os.Stat(top.point); err == nil && os.SameFile(here, own) {
		if top.above == unknown {
			return "/"
		}
		return "" // another mount covers our own
	}
	left := maxGroups
	for depth, level := 1, []string{""}; len(level) > 0; depth++ {
		var next []string
		for _, above := range level {
			for _, name := range folders(top.point + above) {
				if left--; left < 0 {
					return ""
				}
				path := above + "/" + name
				if top.above != unknown && depth < top.above {
					next = append(next, path)
					continue
				}
				if here, err := os.Lstat(top.point + path); err == nil && os.SameFile(here, own) {
					return path
				}
				if top.above == unknown {
					next = append(next, path)
				}
			}
		}
		level = next
	}
	return ""
}

// folders lists the folders in a folder, or none if it cannot be read.
func folders(path string) []string {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	entries, _ := file.ReadDir(2 * maxGroups) // entries before an error are valid; files count
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}

// View is the cgroup v2 tree below root. In a container with its own cgroup namespace, the kernel shows all paths
// relative to the container's cgroup: "/../../system.slice/x.service", and "/" for the container
// (cgroup_namespaces(7)). If the host's tree is mounted below root, a View finds that cgroup in it and returns paths
// from the top of the tree, as Dir takes them and as processes of the host see them. Otherwise paths stay as the kernel
// shows them: without the host's tree, without the container's own mount, by which the cgroup is recognized, or with
// root "" or "/".
//
// It is safe for concurrent use.
type View struct {
	root  string
	trees trees

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
