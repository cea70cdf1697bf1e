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

// maxDepth bounds the stack of devices and file systems.
const maxDepth = 32

// Placement is where the data of a file system lie.
type Placement struct {
	Mount sample.Mount
	// Disks are the leaf disks, sorted. It is empty for memory, network and FUSE file systems. A loop device with its
	// file on a network or FUSE file system is a leaf.
	Disks   []string
	Devices []string // between Mount and Disks, top first: partitions, dm, md and loop devices
}

// Under returns the disks under an existing file or folder of the machine. A file system without a block device is not
// an error: its Placement has a Mount and no Disks. After an error the Placement has what was found before.
func (s *Source) Under(path string) (Placement, error) {
	if path == "" {
		return Placement{}, errors.New("no path given: name a file or folder")
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
	return placement, oneLine(err, mountsErr) // a line that cannot be parsed may be the mount of this path
}

// UnderMount returns the disks under a mount, which may be in the namespace of another process. The layers of an
// overlay are known only if this machine has it mounted, too.
func (s *Source) UnderMount(m sample.Mount) (Placement, error) {
	mounts, mountsErr := s.mounts()
	entry := mount.Entry{Mount: m}
	for i := range mounts {
		if mounts[i].Type == m.Type && mounts[i].Major == m.Major && mounts[i].Minor == m.Minor {
			entry = mounts[i] // the same file system, with its options
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

// mountLists are the lists of the machine's mounts, to be tried in this order. In a container, /hostfs/proc/self would
// be this process with its own mounts, so process 1 comes first.
func mountLists(root string) (lists []*mount.List) {
	processes := []string{"1", "self"}
	if root == "/" {
		processes = []string{"self"}
	}
	for _, process := range processes {
		lists = append(lists, mount.NewList(filepath.Join(root, "proc", process, "mountinfo")))
	}
	return lists
}

// mounts returns the mounts of the machine. They are shared: do not change them.
func (s *Source) mounts() ([]mount.Entry, error) {
	var failed error
	for _, list := range s.lists {
		entries, err := list.Entries()
		if len(entries) > 0 {
			return entries, err
		}
		if failed = err; err == nil {
			failed = errors.New("the list of mounts is empty")
		}
	}
	return nil, failed
}

// descent walks from a mount down to the disks.
type descent struct {
	sys    sysfs
	mounts []mount.Entry
	named  bool            // ends at the first whole device, and follows no path through the file system
	seen   map[string]bool // devices, and mounts as "mount ID"
	found  Placement
	failed error // first error
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

// enter reports whether to follow key: not a second time, and not below maxDepth.
func (d *descent) enter(key string, depth int) bool {
	if d.seen[key] {
		return false
	}
	d.seen[key] = true
	if depth > maxDepth {
		d.fail(fmt.Errorf("%s: the disks below are not known, because more than %d devices are stacked", key, maxDepth))
		return false
	}
	return true
}

// covering returns the mount that contains an absolute path of the machine.
func (d *descent) covering(path string) (mount.Entry, error) {
	resolved, err := path, error(nil)
	if !d.named {
		resolved, err = resolve(d.sys.root, path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return mount.Entry{}, fmt.Errorf("%s does not exist: name a file or folder that does", path)
	}
	if err != nil {
		return mount.Entry{}, fmt.Errorf("%s cannot be looked up: %w", path, err)
	}
	entry, found := mount.Covering(d.mounts, resolved)
	if !found {
		return mount.Entry{}, fmt.Errorf(
			"%s lies on no mount that is visible to this process, as in a chroot: run it outside",
			path,
		)
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
			d.fail(fmt.Errorf("%s is on block device %s, which %s does not list: mount the machine's /sys there",
				entry.Point, number, filepath.Join(d.sys.root, "sys/dev/block")))
			return
		}
		d.device(name, depth+1)
	case mount.HasBlockDevice(entry.Mount):
		for _, member := range d.sys.members(entry.Source) {
			if member == "" {
				d.fail(fmt.Errorf("%s is on %s, which is not a block device in %s", entry.Point, entry.Source, d.sys.block()))
				continue
			}
			d.device(member, depth+1)
		}
	}
}

// layer follows one directory of an overlay. Inside a container the directory often does not exist. The overlay then
// has no disks, because a guess might be wrong.
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
	if d.named && !n.partition {
		d.found.Disks = append(d.found.Disks, name)
		return
	}
	if n.leaf() {
		d.disk(name)
		return
	}
	if !n.known {
		d.fail(fmt.Errorf("block device %s disappeared during the lookup: %s does not list it", name, d.sys.block()))
		return
	}
	if n.backing != "" && served(d.mounts, n.backing) {
		d.disk(name)
		return
	}
	d.found.Devices = append(d.found.Devices, name)
	if n.partition {
		if n.parent == "" {
			d.fail(fmt.Errorf("%s is a partition of a disk that is missing in %s", name, d.sys.block()))
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

// disk adds a leaf disk: the devices with its counters, as tree.mark selects them.
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

// file follows the file of a loop device, which may be another device. A deleted file lies where its folder is.
func (d *descent) file(path string, depth int) {
	if name, inDev := strings.CutPrefix(path, "/dev/"); inDev && d.sys.node(name).known {
		d.device(name, depth+1)
		return
	}
	if kept, deleted := strings.CutSuffix(path, " (deleted)"); deleted {
		path = filepath.Dir(kept)
	}
	entry, err := d.covering(path)
	if err != nil {
		d.fail(fmt.Errorf("file of a loop device: %w", err))
		return
	}
	d.mount(entry, depth+1)
}

// maxLinks bounds the symbolic links of a path, as in the kernel.
const maxLinks = 40

var errLinks = errors.New("too many symbolic links")

// resolve returns an absolute path without symbolic links, as seen by a process with "/" at the folder root: absolute
// links stay inside it. It fails if the path does not exist.
func resolve(root, path string) (string, error) {
	done, left, links := "/", strings.TrimPrefix(filepath.Clean("/"+path), "/"), 0
	for left != "" {
		var name string
		name, left, _ = strings.Cut(left, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, name)
		info, err := os.Lstat(filepath.Join(root, next))
		if err != nil {
			return "", err
		}
		if info.Mode()&os.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", &os.PathError{Op: "resolve", Path: path, Err: errLinks}
		}
		target, err := os.Readlink(filepath.Join(root, next))
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			done = "/"
		}
		left = target + "/" + left
	}
	return done, nil
}
