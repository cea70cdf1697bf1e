package monitor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/internal/source/mount"
	"github.com/stallspan/stallspan/internal/source/pagecache"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	lookTime  = 10 * time.Millisecond // for which the beginning of a window waits for what lies at its path
	mostLooks = 4                     // that are under way at once: a file system that does not answer holds one for ever
	mostUnder = 64                    // disks under one path
)

// look sees what lies at a window's path as it begins. Where that takes too long, nothing is known of it.
func (m *Monitor) look(w *window.Window) (seen window.Seen) {
	if w.Path == "" {
		return seen
	}
	if m.looks.Add(1) > mostLooks {
		m.looks.Add(-1)
		return seen
	}
	path, pid, cached := w.Path, w.PID, w.Kind == window.ModelLoad
	found := make(chan window.Seen, 1)
	if !m.errands.run(func() {
		defer m.looks.Add(-1)
		found <- m.lookAt(path, pid, cached)
	}) {
		m.looks.Add(-1)
		return seen
	}
	late := time.NewTimer(lookTime)
	defer late.Stop()
	select {
	case seen = <-found:
	case <-late.C:
	}
	return seen
}

// lookAt sees a path as a process does: the machine itself where that has the same mounts.
func (m *Monitor) lookAt(path string, pid int, cached bool) (seen window.Seen) {
	root, apart := m.rootOf(pid)
	if cached {
		if held, err := pagecache.Look(root, path); err == nil {
			seen.Size, seen.Cached, seen.HasCached = held.Size, held.Cached, held.Known
		}
	}
	if m.disks == nil {
		return seen
	}
	var under disk.Placement
	if apart {
		if at, ok := mountOf(root, path, filepath.Join(root, "../mountinfo")); ok {
			under, _ = m.disks.UnderMount(at.Mount)
		}
	} else if filepath.IsAbs(path) {
		under, _ = m.disks.Under(path)
	}
	seen.Under = under.Disks[:min(len(under.Disks), mostUnder)]
	if under.Mount.Type != "" {
		seen.Device = m.disks.Kind(under)
	}
	return seen
}

// rootOf is the folder that is "/" for a process, and whether its mounts are not the machine's.
func (m *Monitor) rootOf(pid int) (root string, apart bool) {
	proc := filepath.Join("/", m.config.Root, "proc")
	own := "self"
	if filepath.Join("/", m.config.Root) != "/" {
		own = "1"
	}
	if pid <= 0 {
		return m.config.Root, false
	}
	process := filepath.Join(proc, strconv.Itoa(pid))
	ours, err1 := os.Readlink(filepath.Join(proc, own, "ns/mnt"))
	its, err2 := os.Readlink(filepath.Join(process, "ns/mnt"))
	if err1 != nil || err2 != nil || ours == its {
		return m.config.Root, false
	}
	return filepath.Join(process, "root"), true
}

// mountOf is the mount that holds a path below root, by a process's list of mounts. Links are not followed but those of
// the path itself.
func mountOf(root, path, mountinfo string) (mount.Entry, bool) {
	file, err := os.Open(mountinfo)
	if err != nil {
		return mount.Entry{}, false
	}
	defer func() { _ = file.Close() }()
	entries, _ := mount.Entries(file)
	for range maxLinks {
		target, err := os.Readlink(filepath.Join(root, path))
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return mount.Covering(entries, filepath.Clean(path))
}

// maxLinks is how many symbolic links a path may lead through, as in the kernel.
const maxLinks = 40

// seenBefore is what a recording says was seen.
func seenBefore(s *recording.Seen) (seen window.Seen) {
	if s == nil {
		return seen
	}
	seen.Size, seen.Under, seen.Device = s.Size, s.Disks[:min(len(s.Disks), mostUnder)], s.Device
	if s.Cached != nil {
		seen.Cached, seen.HasCached = *s.Cached, true
	}
	return seen
}

// seenNow is the same for a recording that is made.
func seenNow(seen *window.Seen) *recording.Seen {
	if seen.Size == 0 && len(seen.Under) == 0 && seen.Device == "" {
		return nil
	}
	s := &recording.Seen{Size: seen.Size, Disks: slices.Clone(seen.Under), Device: seen.Device}
	if seen.HasCached {
		s.Cached = &seen.Cached
	}
	return s
}
