package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/mount"
)

// maxDepth bounds how many devices and file systems may stand on one another.
const maxDepth = 32

// Placement says where a file system's data lie.
type Placement struct {
	Mount   sample.Mount
	Disks   []string // the leaf disks, sorted; empty for memory, network and FUSE file systems; a loop device on one of the latter two is one
	Devices []string // what stands between Mount and Disks, top first: partitions, dm, md and loop devices
}

// Under finds the disks under a file or folder of the machine, which must exist. A file system without a block device
// is no error: its Placement has the Mount and no Disks. On an error the Placement has what was found before it.
func (s *Source) Under(path string) (Placement, error) {
	if path == "" {
		return Placement{}, errors.New("no path was given: name a file or folder")
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return Placement{}, fmt.Errorf("%s: %w", path, err)
	}
	mounts, mountsErr := s.mounts()
	if len(mounts) == 0 && mountsErr != nil {
		return Placement{}, mountsErr
	}
	d := descent{sys: s.sys, mounts: mounts, seen: make(map[string]bool)}
	entry, err := d.covering(absolute)
	if err != nil {
		return Placement{}, err
	}
	placement, err := d.from(entry)
	return placement, oneLine(err, mountsErr) // a line that was not understood may be the mount that was asked for
}

// UnderMount finds the disks under a mount, which may be another process's. An overlay is only seen through where
// this machine has it mounted too.
func (s *Source) UnderMount(m sample.Mount) (Placement, error) {
	mounts, mountsErr := s.mounts()
	entry := mount.Entry{Mount: m}
	for i := range mounts {
		if mounts[i].Type == m.Type && mounts[i].Major == m.Major && mounts[i].Minor == m.Minor {
			entry = mounts[i] // the same file system, whatever its mount point: it has the options
			entry.Mount = m
			break
		}
	}
	if len(mounts) == 0 && mountsErr != nil && mount.Kind(m.Type) == mount.Overlay {
		return Placement{Mount: m}, mountsErr
	}
	d := descent{sys: s.sys, mounts: mounts, seen: make(map[string]bool)}
	return d.from(entry)
}

// mounts reads the machine's mounts. In a container, /hostfs/proc/self would be this process with its own mounts, so
// the first process's are asked for.
func (s *Source) mounts() ([]mount.Entry, error) {
	processes := []string{"1", "self"}
	if s.root == "/" {
		processes = []string{"self"}
	}
	var failed error
	for _, process := range processes {
		file, err := os.Open(filepath.Join(s.root, "proc", process, "mountinfo"))
		if err != nil {
			failed = fmt.Errorf("the list of mounts cannot be read: %w", err)
			continue
		}
		entries, err := mount.Entries(file)
		_ = file.Close()
		if len(entries) > 0 {
			return entries, err
		}
		failed = oneLine(errors.New("the list of mounts is empty"), err)
	}
	return nil, failed
}

// descent is one walk from a mount down to the disks.
type descent struct {
	sys    sysfs
	mounts []mount.Entry
	seen   map[string]bool // devices, and mounts as "mount ID"
	found  Placement
	failed error // the first thing that could not be followed
}

func (d *descent) from(entry mount.Entry) (Placement, error) {
	d.found.Mount = entry.Mount
	d.mount(entry, 0)
	slices.Sort(d.found.Disks)
	return d.found, d.failed
}

func (d *descent) fail(err error) {
	if d.failed == nil {
		d.failed = err
	}
}

// enter tells whether key is to be followed: not a second time, and not endlessly deep.
func (d *descent) enter(key string, depth int) bool {
	if d.seen[key] {
		return false
	}
	d.seen[key] = true
	if depth > maxDepth {
		d.fail(fmt.Errorf("%s: more than %d devices stand on one another, so the disks below are not known", key, maxDepth))
		return false
	}
	return true
}

// covering is the mount that holds an absolute path of the machine.
func (d *descent) covering(path string) (mount.Entry, error) {
	resolved, err := resolve(d.sys.root, path)
	if errors.Is(err, fs.ErrNotExist) {
		return mount.Entry{}, fmt.Errorf("%s does not exist: name a file or folder that does", path)
	}
	if err != nil {
		return mount.Entry{}, fmt.Errorf("%s cannot be looked up: %w", path, err)
	}
	entry, found := mount.Covering(d.mounts, resolved)
	if !found {
		return mount.Entry{}, fmt.Errorf("%s lies on no mount that this process can see: is this a chroot?", path)
	}
	return entry, nil
}

func (d *descent) mount(entry mount.Entry, depth int) {
	if !d.enter("mount "+strconv.Itoa(entry.ID), depth) {
		return
	}
	for _, layer := range entry.Layers() {
		d.layer(entry, layer, depth)
	}
	switch {
	case entry.Major != 0:
		number := fmt.Sprintf("%d:%d", entry.Major, entry.Minor)
		name := d.sys.byNumber(number)
		if name == "" {
			d.fail(fmt.Errorf("%s is on block device %s, which %s does not list: is the machine's /sys there?",
				entry.Point, number, filepath.Join(d.sys.root, "sys/dev/block")))
			return
		}
		d.device(name, depth+1)
	case mount.HasBlockDevice(entry.Mount):
		// btrfs names one of its devices as the source, bcachefs all, with colons between them.
		for source := range strings.SplitSeq(entry.Source, ":") {
			name := d.sys.byPath(source)
			if name == "" {
				d.fail(fmt.Errorf("%s is on %s, which is no block device that %s knows", entry.Point, source, d.sys.block()))
				continue
			}
			for _, member := range d.sys.btrfsMembers(name) {
				d.device(member, depth+1)
			}
		}
	}
}

// layer follows one directory of an overlay. Seen from inside a container the directory is often not there: the
// overlay then stays without disks, for to guess would be to name a wrong one.
func (d *descent) layer(overlay mount.Entry, path string, depth int) {
	if !filepath.IsAbs(path) {
		return
	}
	below, err := d.covering(path)
	if err != nil || below.ID == overlay.ID {
		return
	}
	d.mount(below, depth+1)
}

func (d *descent) device(name string, depth int) {
	if !d.enter(name, depth) {
		return
	}
	n := d.sys.node(name)
	if n.leaf() {
		d.disk(name)
		return
	}
	if !n.known {
		d.fail(fmt.Errorf("block device %s went away while it was looked up: %s does not list it", name, d.sys.block()))
		return
	}
	if n.backing != "" && served(d.mounts, n.backing) {
		d.disk(name)
		return
	}
	d.found.Devices = append(d.found.Devices, name)
	if n.partition {
		if n.parent == "" {
			d.fail(fmt.Errorf("%s is a partition of a disk that %s does not name", name, d.sys.block()))
			return
		}
		d.device(n.parent, depth+1)
	}
	for _, slave := range n.slaves {
		d.device(slave, depth+1)
	}
	if n.backing != "" {
		d.file(n.backing, depth)
	}
}

// disk adds a leaf disk: the devices that have its counters, as tree.mark chooses them.
func (d *descent) disk(name string) {
	if paths := d.sys.paths(name); len(paths) > 0 && d.sys.silent(name) {
		if slices.ContainsFunc(paths, func(path string) bool { return !d.sys.silent(path) }) {
			d.found.Devices = append(d.found.Devices, name)
			d.found.Disks = append(d.found.Disks, paths...)
			return
		}
	}
	d.found.Disks = append(d.found.Disks, name)
}

// file follows the file that a loop device shows. A deleted one lies where its folder still is.
func (d *descent) file(path string, depth int) {
	if kept, deleted := strings.CutSuffix(path, " (deleted)"); deleted {
		path = filepath.Dir(kept)
	}
	entry, err := d.covering(path)
	if err != nil {
		d.fail(fmt.Errorf("the file of a loop device: %w", err))
		return
	}
	d.mount(entry, depth+1)
}
