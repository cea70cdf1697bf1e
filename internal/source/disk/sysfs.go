package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/mount"
)

// sysfs reads about block devices under <root>/sys. It has no state.
type sysfs struct{ root string }

// node is one block device and what it is stacked on.
type node struct {
	name      string
	known     bool     // exists in /sys
	partition bool     // of parent
	parent    string   // "" unless a partition
	slaves    []string // parts of a dm, md or bcache device
	loop      bool     // a loop device
	backing   string   // file of a loop device; "" if unused
	hidden    bool     // one of several paths to a disk
}

func (f sysfs) block() string { return filepath.Join(f.root, "sys/class/block") }

// folder returns the folder of a device. /sys replaces "/" in names by "!", as in cciss!c0d0.
func (f sysfs) folder(name string) string {
	return filepath.Join(f.block(), strings.ReplaceAll(name, "/", "!"))
}

// deviceName is the inverse of folder.
func deviceName(path string) string { return strings.ReplaceAll(filepath.Base(path), "!", "/") }

// node reads one device. A device that is gone has known unset.
func (f sysfs) node(name string) node {
	n := node{name: name, loop: numbered(name, "loop")}
	if name == "" || name == "." || name == ".." || strings.IndexByte(name, 0) >= 0 {
		return n
	}
	folder := f.folder(name)
	info, err := os.Stat(folder)
	if err != nil || !info.IsDir() {
		return n
	}
	n.known = true
	if _, err := os.Stat(filepath.Join(folder, "partition")); err == nil {
		n.partition = true
		// The folder is a link to .../sda/sda1, below that of its disk.
		if target, err := os.Readlink(folder); err == nil {
			n.parent = deviceName(filepath.Dir(target))
		}
		return n
	}
	n.slaves = devicesIn(filepath.Join(folder, "slaves"))
	if backing, err := os.ReadFile(filepath.Join(folder, "loop/backing_file")); err == nil {
		n.loop = true
		n.backing = strings.TrimSuffix(string(backing), "\n")
	}
	n.hidden = f.text(name, "hidden") == "1"
	return n
}

// devicesIn returns the devices that a folder lists; none if it cannot be read.
func devicesIn(folder string) (names []string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		names = append(names, deviceName(entry.Name()))
	}
	return names
}

// whole returns the device of a partition, and other names unchanged.
func (f sysfs) whole(name string) string {
	if n := f.node(name); n.partition && n.parent != "" {
		return n.parent
	}
	return name
}

// wholes returns the whole devices of some names, each once, in order, separated by spaces.
func (f sysfs) wholes(names []string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = f.whole(name)
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), " ")
}

// leaf reports whether n is a whole device that is not stacked on others.
func (n *node) leaf() bool {
	return n.known && !n.partition && len(n.slaves) == 0 && !n.loop && !n.hidden && !stacked(n.name)
}

// byNumber returns the device with a number, or "".
func (f sysfs) byNumber(number string) string {
	target, err := os.Readlink(filepath.Join(f.root, "sys/dev/block", number))
	if err != nil {
		return ""
	}
	return deviceName(target)
}

// NameOf returns the block device with a number such as "8:16" of the machine with "/" at root; "" without one.
func NameOf(root, number string) string {
	if strings.ContainsAny(number, "/.") {
		return ""
	}
	return sysfs{root: root}.byNumber(number)
}

// DevicesOf returns the whole block devices directly below a mount, as sample.Mount has them.
func DevicesOf(root string, m sample.Mount) string {
	f := sysfs{root: root}
	var names []string
	switch {
	case m.Major != 0:
		names = []string{f.byNumber(fmt.Sprintf("%d:%d", m.Major, m.Minor))}
	case mount.HasBlockDevice(m):
		names = f.members(m.Source)
	}
	return f.wholes(slices.DeleteFunc(names, func(name string) bool { return name == "" }))
}

// members returns the devices of a file system that may be on several. The source of btrfs is one of its devices. The
// source of bcachefs is all of them, separated by colons. One that is not known is "".
func (f sysfs) members(source string) (names []string) {
	for path := range strings.SplitSeq(source, ":") {
		name := f.byPath(path)
		if name == "" {
			names = append(names, "")
			continue
		}
		names = append(names, f.btrfsMembers(name)...)
	}
	return names
}

// byPath returns the device of a path below /dev, or "". Device-mapper names are symbolic links there, which udev may
// not create in the /dev of a container.
func (f sysfs) byPath(path string) string {
	if resolved, err := resolve(f.root, path); err == nil {
		path = resolved
	}
	if mapped, isMapped := strings.CutPrefix(path, "/dev/mapper/"); isMapped {
		names, _ := filepath.Glob(filepath.Join(f.block(), "dm-*", "dm", "name"))
		for _, file := range names {
			if name, err := os.ReadFile(file); err == nil && strings.TrimSuffix(string(name), "\n") == mapped {
				return deviceName(filepath.Dir(filepath.Dir(file)))
			}
		}
		return ""
	}
	name, isDevice := strings.CutPrefix(path, "/dev/")
	if !isDevice {
		return ""
	}
	if n := f.node(name); !n.known {
		return ""
	}
	return name
}

// btrfsMembers returns all devices of the btrfs that device belongs to, or device alone.
func (f sysfs) btrfsMembers(device string) []string {
	folders, _ := filepath.Glob(filepath.Join(f.root, "sys/fs/btrfs/*/devices"))
	for _, folder := range folders {
		if members := devicesIn(folder); slices.Contains(members, device) {
			return members
		}
	}
	return []string{device}
}

// silent reports whether a device has counted no read and no write so far, or cannot be read.
func (f sysfs) silent(name string) bool {
	text, err := os.ReadFile(filepath.Join(f.folder(name), "stat"))
	if err != nil {
		return true
	}
	fields := strings.Fields(string(text))
	return len(fields) < 5 || fields[0] == "0" && fields[4] == "0"
}

// paths returns the hidden path devices of a disk, see headOf.
func (f sysfs) paths(head string) []string {
	if !strings.HasPrefix(head, "nvme") {
		return nil
	}
	return slices.DeleteFunc(devicesIn(f.block()), func(name string) bool {
		return headOf(name) != head || f.text(name, "hidden") != "1"
	})
}
