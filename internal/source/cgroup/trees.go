package cgroup

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/source/kernfile"
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

// Processes returns the numbers of a cgroup's first processes, at most some 30. The cgroup is one of v2, by its joined
// path (see Join). Processes that are not visible are left out.
func (v *View) Processes(group string) (pids []int) {
	var buf [256]byte
	folder := v.folder("", group)
	if folder == "" {
		return nil
	}
	text, _ := kernfile.ReadPiece(folder+"/cgroup.procs", buf[:])
	for line := range bytes.Lines(text) {
		number, whole := bytes.CutSuffix(line, []byte("\n"))
		if pid, err := strconv.Atoi(string(number)); whole && err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// OfRoot returns how many folders of a cgroup's path, from the top, belong to root and are closed to others. Below,
// users name cgroups as they like. The cgroup is a line of /proc/PID/cgroup: its controllers, "" for cgroup v2, whose
// path is joined (see Join). OfRoot returns false if the cgroup's folder is not visible.
func (v *View) OfRoot(controllers, group string) (folders int, ok bool) {
	folder := v.folder(controllers, group)
	if folder == "" {
		return 0, false
	}
	levels := strings.Count(strings.TrimSuffix(group, "/"), "/")
	folders = levels
	for ; levels > 0; levels-- {
		info, err := os.Lstat(folder)
		if err != nil {
			return 0, false
		}
		if !closed(info) {
			folders = levels - 1
		}
		folder = filepath.Dir(folder)
	}
	return folders, true
}

// closed reports whether only root may make cgroups in a folder.
func closed(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	writable := info.Mode().Perm()&0o002 != 0 || info.Mode().Perm()&0o020 != 0 && ok && stat.Gid != 0
	return ok && stat.Uid == 0 && !writable
}
