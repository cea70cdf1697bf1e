package cgroup

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/source/mount"
)

// lookAgain is the time between two searches for the mounts of cgroups.
const lookAgain = time.Minute

// trees are the mounts of cgroups, of both versions. They are safe for concurrent use.
type trees struct {
	mu     sync.Mutex
	looked time.Time
	second string // folder of the cgroup v2 tree; "" without one
	first  []mount.Entry
}

// find searches for the mounts if the newest search is old.
func (t *trees) find(root string) (second string, first []mount.Entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); t.looked.IsZero() || now.Sub(t.looked) >= lookAgain {
		t.looked, t.first = now, nil
		t.second, _ = Mountpoint(root)
		if file, err := os.Open(filepath.Join(root, "proc/self/mountinfo")); err == nil {
			entries, _ := mount.Entries(file)
			_ = file.Close()
			t.first = firstVersion(root, entries)
		}
	}
	return t.second, t.first
}

// firstVersion returns the mounts of cgroup v1, those of the host in this container first: see chooseTree.
func firstVersion(root string, entries []mount.Entry) (found []mount.Entry) {
	var others []mount.Entry
	for _, e := range entries {
		switch {
		case e.Type != "cgroup":
		case root != "/" && strings.HasPrefix(e.Point, root+"/"):
			found = append(found, e)
		default:
			e.Point = filepath.Join(root, e.Point)
			others = append(others, e)
		}
	}
	return append(found, others...)
}

// folder returns the folder of a cgroup by its line of /proc/PID/cgroup: its controllers, "" for cgroup v2, whose path
// is joined (see Join). It returns "" if the folder is not visible.
func (v *View) folder(controllers, group string) string {
	if path.Clean(group) != group || !path.IsAbs(group) {
		return "" // outside this namespace
	}
	second, first := v.trees.find(v.root)
	if controllers == "" {
		if folder := filepath.Join(second, group); second != "" && isFolder(folder) {
			return folder
		}
		return ""
	}
	one, _, _ := strings.Cut(controllers, ",")
	for i := range first {
		m := &first[i]
		if !m.HasOption(one) {
			continue
		}
		below := group
		if rest, inside := strings.CutPrefix(group, m.Root); inside && m.Root != "/" {
			below = rest // the mount of a container begins at its own cgroup
		}
		if folder := filepath.Join(m.Point, below); isFolder(folder) {
			return folder
		}
	}
	return ""
}

// Owner returns the user who made a cgroup, or to whom it was given, by its line of /proc/PID/cgroup: its controllers,
// "" for cgroup v2, whose path is joined (see Join). It returns false if the cgroup's folder is not visible.
func (v *View) Owner(controllers, group string) (uid int, ok bool) {
	folder := v.folder(controllers, group)
	if folder == "" {
		return -1, false
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return -1, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, false
	}
	return int(stat.Uid), true
}
