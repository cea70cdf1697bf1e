package probe

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/internal/source/mount"
	"github.com/stallspan/stallspan/internal/source/pagecache"
	"github.com/stallspan/stallspan/internal/source/procfile"
	"github.com/stallspan/stallspan/internal/window"
)

// Path returns what is at a window's path: the size, the disks below it and, for a model load, what the page cache
// holds of it. It returns nothing if the file system takes longer than 10 ms.
func (p *Probe) Path(w *window.Window) window.Seen {
	if w.Path == "" {
		return window.Seen{}
	}
	seen := p.look(w, pathTime)
	if w.Kind == window.ModelLoad {
		at, _ := p.place(w)
		seen.Before, seen.Dropped = p.cachedBefore(at)
	}
	return seen
}

// PathAtEnd is Path for the end of a window, which may wait longer: the file system has just answered the job.
func (p *Probe) PathAtEnd(w *window.Window) window.Seen { return p.look(w, existsTime) }

func (p *Probe) look(w *window.Window, patience time.Duration) window.Seen {
	path, pid, load := w.Path, w.PID, w.Kind == window.ModelLoad
	return await(p, w.Client, patience, func() window.Seen { return p.inspect(path, pid, load) })
}

// Ended returns those of the mounts whose FUSE server has ended. Until it is unmounted, everything on it fails.
func (p *Probe) Ended(client string, mounts []sample.Mount) []sample.Mount {
	return await(p, client, existsTime, func() (ended []sample.Mount) {
		for _, m := range mounts {
			var fs unix.Statfs_t
			if mount.Kind(m.Type) != mount.Fuse {
				continue
			}
			if err := unix.Statfs(filepath.Join("/", p.root, m.Point), &fs); errors.Is(err, unix.ENOTCONN) {
				ended = append(ended, m)
			}
		}
		return ended
	})
}

// inspect resolves a path in the mount namespace of a process.
func (p *Probe) inspect(path string, pid int, load bool) (seen window.Seen) {
	root, apart := p.rootOf(pid)
	if load {
		seen.Layer = p.inLayer(root, path, apart)
		if held, err := pagecache.Look(root, path); err == nil {
			seen.Size, seen.Cached, seen.HasCached, seen.Sampled = held.Size, held.Cached, held.Known, held.Sampled
		}
	}
	if p.disks == nil {
		return seen
	}
	var under disk.Placement
	if apart {
		if at, ok := mountOf(root, path, filepath.Join(root, "../mountinfo")); ok {
			under, _ = p.disks.UnderMount(at.Mount)
		}
	} else if filepath.IsAbs(path) {
		under, _ = p.disks.Under(path)
	}
	seen.Under = under.Disks[:min(len(under.Disks), maxUnder)]
	seen.Above = under.Devices[:min(len(under.Devices), maxUnder)]
	if under.Mount.Type != "" {
		seen.Device = p.disks.Kind(under)
	}
	return seen
}

// rootOf returns the folder that is "/" for a process. apart means that its mounts are not those of the machine.
func (p *Probe) rootOf(pid int) (root string, apart bool) {
	if pid <= 0 {
		return p.root, false
	}
	proc := filepath.Join("/", p.root, "proc")
	process := filepath.Join(proc, strconv.Itoa(pid))
	ours, err1 := p.ownMounts(proc)
	its, err2 := procfile.Do(proc, pid, func() string {
		its, _ := os.Readlink(filepath.Join(process, "ns/mnt"))
		return its
	})
	if err1 != nil || err2 != nil || its == "" || ours == its {
		return p.root, false
	}
	return filepath.Join(process, "root"), true
}

// ownMounts returns the name of the machine's mount namespace: this process's, which it never changes, or in a
// container that of process 1.
func (p *Probe) ownMounts(proc string) (string, error) {
	if filepath.Join("/", p.root) != "/" {
		return os.Readlink(filepath.Join(proc, "1/ns/mnt"))
	}
	if known := p.mounts.Load(); known != nil {
		return *known, nil
	}
	name, err := os.Readlink(filepath.Join(proc, "self/ns/mnt"))
	if err == nil {
		p.mounts.Store(&name)
	}
	return name, err
}

// mountOf returns the mount of a path below root, by a process's list of mounts. It follows symbolic links of the last
// component only.
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

// inLayer reports whether a path is on an overlay, and not in its writable layer. It is false where that layer cannot
// be seen. Links in the path are followed as mountOf does.
func (p *Probe) inLayer(root, path string, apart bool) bool {
	mountinfo := filepath.Join("/", p.root, "proc/self/mountinfo")
	if apart {
		mountinfo = filepath.Join(root, "../mountinfo")
	}
	at, ok := mountOf(root, path, mountinfo)
	if !ok || at.Type != "overlay" {
		return false
	}
	upper := at.Upper()
	if upper == "" {
		return true
	}
	below, err := filepath.Rel(at.Point, path)
	if err != nil {
		return false
	}
	upper = filepath.Join("/", p.root, upper)
	if _, err := os.Stat(upper); err != nil {
		return false
	}
	_, err = os.Lstat(filepath.Join(upper, below))
	return errors.Is(err, fs.ErrNotExist)
}

// maxLinks bounds the symbolic links of one path, as the kernel does.
const maxLinks = 40
