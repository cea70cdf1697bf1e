package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sysfs is what a machine says about its block devices under <root>/sys. It keeps nothing.
type sysfs struct{ root string }

// node is one block device and what it stands on.
type node struct {
	name      string
	known     bool     // /sys has it
	partition bool     // it is a part of parent
	parent    string   // "" where it is no partition
	slaves    []string // what a dm, md or bcache device is made of
	loop      bool     // it shows a file, or may
	backing   string   // that file; "" for an unused loop device
	hidden    bool     // one of several ways to a disk that has a device of its own
}

func (f sysfs) block() string { return filepath.Join(f.root, "sys/class/block") }

// folder is where /sys keeps a device: it writes a "/" in a name as "!", as in cciss!c0d0.
func (f sysfs) folder(name string) string {
	return filepath.Join(f.block(), strings.ReplaceAll(name, "/", "!"))
}

// deviceName undoes folder.
func deviceName(path string) string { return strings.ReplaceAll(filepath.Base(path), "!", "/") }

// present tells whether /sys lists block devices at all.
func (f sysfs) present() bool {
	info, err := os.Stat(f.block())
	return err == nil && info.IsDir()
}

// node reads what /sys says about one device now. A device that is gone comes back with known unset.
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
		// The folder is a link to .../sda/sda1, below its disk's own.
		if target, err := os.Readlink(folder); err == nil {
			n.parent = deviceName(filepath.Dir(target))
		}
		return n
	}
	if entries, err := os.ReadDir(filepath.Join(folder, "slaves")); err == nil {
		for _, entry := range entries {
			n.slaves = append(n.slaves, deviceName(entry.Name()))
		}
	}
	if backing, err := os.ReadFile(filepath.Join(folder, "loop/backing_file")); err == nil {
		n.loop = true
		n.backing = strings.TrimSuffix(string(backing), "\n")
	}
	if hidden, err := os.ReadFile(filepath.Join(folder, "hidden")); err == nil {
		n.hidden = string(bytes.TrimSpace(hidden)) == "1"
	}
	return n
}

// leaf tells whether n is a whole device that stands on nothing else.
func (n *node) leaf() bool {
	return n.known && !n.partition && len(n.slaves) == 0 && !n.loop && !n.hidden && !stacked(n.name)
}

// byNumber is the device with a number, or "".
func (f sysfs) byNumber(number string) string {
	target, err := os.Readlink(filepath.Join(f.root, "sys/dev/block", number))
	if err != nil {
		return ""
	}
	return deviceName(target)
}

// byPath is the device that a path below /dev means, or "": device-mapper's names there are symbolic links, which
// udev may not have made where /dev is a container's own.
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

// btrfsMembers are all devices of the btrfs that device belongs to, or device alone.
func (f sysfs) btrfsMembers(device string) []string {
	folders, _ := filepath.Glob(filepath.Join(f.root, "sys/fs/btrfs/*/devices"))
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue
		}
		var members []string
		for _, entry := range entries {
			members = append(members, deviceName(entry.Name()))
		}
		if slices.Contains(members, device) {
			return members
		}
	}
	return []string{device}
}

// silent tells whether a device has counted no read and no write so far; so does one that cannot be read.
func (f sysfs) silent(name string) bool {
	text, err := os.ReadFile(filepath.Join(f.folder(name), "stat"))
	if err != nil {
		return true
	}
	fields := strings.Fields(string(text))
	return len(fields) < 5 || fields[0] == "0" && fields[4] == "0"
}

// paths are the hidden devices through which a disk is reached, see headOf.
func (f sysfs) paths(head string) []string {
	if !strings.HasPrefix(head, "nvme") {
		return nil
	}
	entries, err := os.ReadDir(f.block())
	if err != nil {
		return nil
	}
	var paths []string
	for _, entry := range entries {
		if name := deviceName(entry.Name()); headOf(name) == head {
			if n := f.node(name); n.hidden {
				paths = append(paths, name)
			}
		}
	}
	return paths
}
