package disk

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// Kinds of devices. A file system without a block device has its type as kind.
const (
	Remote     = "remote"     // a volume that is attached over a network
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
	case f.remote(name):
		return Remote
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

// networkDevices are names of devices whose driver is a client of a network: Ceph, NBD, RTRS and ATA over Ethernet.
var networkDevices = []string{"rbd", "nbd", "rnbd", "etherd"}

// networkModels are how the vendor and model of network volumes begin. NVMe has the model only. Microsoft's virtual
// disk may also be a disk of the host: a guest sees no difference.
var networkModels = []string{
	"Amazon Elastic Block Store", "nvme_card-pd", "Google PersistentDisk", "PersistentDisk", "Msft Virtual Disk",
	"MSFT NVMe Accelerator", "Alibaba Cloud Elastic Block Storage", "ORACLE BlockVolume", "DO Volume", "HC Volume",
	"Linode Volume", "SCW b_ssd", "SCW sbs",
}

// cinderSerial is the UUID of an OpenStack volume, which Nova sets as its serial, or what virtio has room for of it. In
// vpd_pg80 of SCSI, four bytes are before it.
var cinderSerial = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]([0-9a-f]{3}-[0-9a-f]{12})?$`)

// remote reports whether a device is known to be a volume that is attached over a network.
func (f sysfs) remote(name string) bool {
	model := strings.TrimSpace(f.text(name, "device/vendor") + " " + f.text(name, "device/model"))
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(model, prefix) }
	switch {
	case slices.ContainsFunc(networkDevices, func(kind string) bool { return numbered(name, kind) }):
		return true
	case strings.HasPrefix(name, "vd"):
		return cinderSerial.MatchString(f.text(name, "serial"))
	case slices.ContainsFunc(networkModels, hasPrefix), strings.Contains(model, "iSCSI"):
		return true
	case strings.HasPrefix(model, "QEMU"):
		return cinderSerial.MatchString(f.text(name, "device/vpd_pg80"))
	case strings.HasPrefix(name, "nvme"):
		return f.overFabrics(name)
	}
	return f.overNetwork(name)
}

// overFabrics reports whether an NVMe disk is reached over a network, by any of its controllers.
func (f sysfs) overFabrics(name string) bool {
	files, _ := filepath.Glob(filepath.Join(f.folder(name), "device/nvme*/transport")) // of a disk with several paths
	for _, file := range append(files, filepath.Join(f.folder(name), "device/transport")) {
		if slices.Contains([]string{"tcp", "rdma", "fc"}, kernfile.Text(file)) {
			return true
		}
	}
	return false
}

// overNetwork reports whether a SCSI disk is reached over iSCSI or Fibre Channel: its host has such a transport.
func (f sysfs) overNetwork(name string) bool {
	device, err := filepath.EvalSymlinks(filepath.Join(f.folder(name), "device"))
	if err != nil {
		return false
	}
	for part := range strings.SplitSeq(device, "/") {
		if !numbered(part, "host") {
			continue
		}
		for _, class := range []string{"iscsi_host", "fc_host"} {
			if _, err := os.Stat(filepath.Join(f.root, "sys/class", class, part)); err == nil {
				return true
			}
		}
	}
	return false
}

// IsHypervisor reports whether a SCSI vendor makes the disks of virtual machines.
func IsHypervisor(vendor string) bool {
	return slices.Contains([]string{"QEMU", "VMware", "VMware,", "Msft", "Google", "VBOX", "XENSRC", "Nutanix"}, vendor)
}

func (f sysfs) text(name, file string) string {
	return kernfile.Text(filepath.Join(f.folder(name), file))
}

// stacked reports by its name whether a device consists of other devices, files or memory. /sys lists slaves of most,
// but not during their setup, and not of zd (ZFS volumes) and older drbd.
func stacked(name string) bool {
	kinds := []string{"dm-", "md", "loop", "zram", "ram", "zd", "drbd", "bcache"}
	return slices.ContainsFunc(kinds, func(kind string) bool { return numbered(name, kind) })
}

// inMemory reports by its name whether a device keeps its data in memory.
func inMemory(name string) bool { return numbered(name, "ram") || numbered(name, "zram") }

// numbered reports whether name is prefix and a number ("md0", "md_d0", "md/home").
func numbered(name, prefix string) bool {
	rest, found := strings.CutPrefix(name, prefix)
	return found && rest != "" && (isDigit(rest[0]) || rest[0] == '_' || rest[0] == '/')
}

// headOf returns the disk of a hidden NVMe path: nvme0n1 for nvme0c1n1, "" for other names.
func headOf(name string) string {
	rest, isNVMe := strings.CutPrefix(name, "nvme")
	if !isNVMe {
		return ""
	}
	subsystem, rest, hasController := strings.Cut(rest, "c")
	controller, namespace, hasNamespace := strings.Cut(rest, "n")
	if !hasController || !hasNamespace || !allDigits(subsystem) || !allDigits(controller) || !allDigits(namespace) {
		return ""
	}
	return "nvme" + subsystem + "n" + namespace
}

// partOf returns the device of a partition by its name: sda for sda1, nvme0n1 for nvme0n1p2, "" for other names. The
// caller checks whether the device exists: some machines have an xvda1 and no xvda.
func partOf(name string) string {
	whole := strings.TrimRight(name, "0123456789")
	if whole == name || whole == "" {
		return ""
	}
	if before, hasP := strings.CutSuffix(whole, "p"); hasP && before != "" && isDigit(before[len(before)-1]) {
		return before
	}
	if isDigit(whole[len(whole)-1]) {
		return ""
	}
	return whole
}

func isDigit(c byte) bool { return c-'0' <= 9 }

func allDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
