package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Kinds of devices. A file system without a block device has its type as kind.
const (
	NVMe       = "nvme"       // by name
	SSD        = "ssd"        // queue/rotational is 0
	Rotational = "rotational" // queue/rotational is 1, and the device is not virtual
	Virtual    = "virtual"    // from a hypervisor, where rotational means nothing
	Loop       = "loop"       // a file as a disk
	Memory     = "memory"     // tmpfs, ramfs, RAM disks and zram
	NoKind     = "unknown"    // not in /sys
)

// Kind returns the kind of storage of a file system. Different kinds are joined in order: "nvme+ssd".
func (s *Source) Kind(p Placement) string {
	switch {
	case slices.ContainsFunc(p.Devices, func(name string) bool { return numbered(name, "loop") }):
		return Loop
	case len(p.Disks) > 0:
		return s.KindOf(p.Disks...)
	case p.Mount.Type == "tmpfs", p.Mount.Type == "ramfs":
		return Memory
	case p.Mount.Type == "" || len(p.Devices) > 0:
		return NoKind
	}
	return p.Mount.Type
}

// KindOf returns the kind of disks.
func (s *Source) KindOf(disks ...string) string {
	var kinds []string
	for _, name := range disks {
		kinds = append(kinds, s.sys.kind(name))
	}
	slices.Sort(kinds)
	return strings.Join(slices.Compact(kinds), "+")
}

func (f sysfs) kind(name string) string {
	switch {
	case strings.HasPrefix(name, "nvme"):
		return NVMe
	case numbered(name, "loop"):
		return Loop
	case inMemory(name):
		return Memory
	case strings.HasPrefix(name, "vd"), strings.HasPrefix(name, "xvd"):
		return Virtual
	}
	switch f.text(name, "queue/rotational") {
	case "0":
		return SSD
	case "1":
		if IsHypervisor(f.text(name, "device/vendor")) {
			return Virtual
		}
		return Rotational
	}
	return NoKind
}

// IsHypervisor reports whether a SCSI vendor makes the disks of virtual machines.
func IsHypervisor(vendor string) bool {
	switch vendor {
	case "QEMU", "VMware", "VMware,", "Msft", "Google", "VBOX", "XENSRC", "Nutanix":
		return true
	}
	return false
}

func (f sysfs) text(name, file string) string {
	text, err := os.ReadFile(filepath.Join(f.folder(name), file))
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(text))
}
