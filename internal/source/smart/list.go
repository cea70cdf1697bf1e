package smart

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Disk is what a config says of a disk.
type Disk struct {
	Device string // its path below /dev, as in /dev/sda
	Type   string // smartctl's --device, as in "sat" or "sat+megaraid,3"; "" lets smartctl find out
	Off    bool   // it is not asked
}

var (
	devicePath = regexp.MustCompile(`^/dev/[A-Za-z0-9][A-Za-z0-9._:+/-]{0,120}$`)
	deviceType = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9+,/._-]{0,62}$`)

	// disks are the names that the kernel gives to what may have SMART. All else is virtual (vd, xvd, loop, zram, dm, md,
	// nbd, rbd, drbd), has none (mmcblk, pmem, fd) or is no disk (sr, st).
	disks = regexp.MustCompile(`^(?:sd[a-z]{1,4}|hd[a-z]|nvme[0-9]{1,4}n[0-9]{1,4})$`)
)

// hypervisors are the vendors that SCSI disks of virtual machines have.
var hypervisors = []string{"QEMU", "VMware", "VMware,", "Msft", "Google", "VBOX", "XENSRC", "Nutanix"}

// Check says what is wrong with what a config says of a disk. Nothing of it ever reaches a shell; this keeps it from being
// taken for another argument or another file.
func (d Disk) Check() error {
	if !devicePath.MatchString(d.Device) || strings.Contains(d.Device, "..") || filepath.Clean(d.Device) != d.Device {
		return fmt.Errorf("%.80q is no path of a disk: give one like /dev/sda", d.Device)
	}
	if d.Type != "" && !deviceType.MatchString(d.Type) {
		return fmt.Errorf("%.80q is no type of a disk: give one of smartctl --device, like sat or megaraid,0", d.Type)
	}
	return nil
}

// target is a disk that is to be asked.
type target struct {
	name      string // "sda"
	path      string // "/dev/sda"
	kind      string // smartctl's --device
	wwid      string // as the kernel tells it; "" where it does not, or of a disk behind a controller
	suspended bool   // the kernel has sent it to sleep: to open it would wake it
}

// targets are the whole disks of this machine, and what the config adds: a disk that the config names is asked as often
// and in the ways that it says, and no other. The error says that the machine's own could not be listed, or not all.
func (o *Options) targets() ([]target, error) {
	var found []target
	var own []string
	var err error
	if !o.Only {
		own, err = o.own()
	}
	named := map[string]bool{}
	for _, d := range o.Disks {
		named[o.resolve(d.Device)] = true
	}
	for _, name := range own {
		if !named[name] {
			found = append(found, o.target(name, "/dev/"+name, ""))
		}
	}
	for _, d := range o.Disks {
		if !d.Off {
			found = append(found, o.target(o.resolve(d.Device), d.Device, d.Type))
		}
	}
	slices.SortStableFunc(found, func(a, b target) int {
		if len(a.name) != len(b.name) && a.name[0] == b.name[0] { // sda before sdaa
			return len(a.name) - len(b.name)
		}
		return strings.Compare(a.name, b.name)
	})
	return found, err
}

// own are the names of the disks that the machine lists and that may have SMART.
func (o *Options) own() ([]string, error) {
	var names []string
	folder := filepath.Join("/", o.Root, "sys/class/block")
	entries, err := os.ReadDir(folder)
	if err != nil {
		err = fmt.Errorf("the machine's disks cannot be listed: %w", err)
	}
	for _, e := range entries {
		if name := e.Name(); disks.MatchString(name) && o.asks(filepath.Join(folder, name)) {
			names = append(names, name)
		}
	}
	return names, err
}

// resolve is the name of a device: that of the disk to which a link below /dev leads.
func (o *Options) resolve(path string) string {
	if whole, err := filepath.EvalSymlinks(path); err == nil && strings.HasPrefix(whole, "/dev/") {
		path = whole
	}
	return deviceName(path)
}

// asks says whether a device of that name is a disk with hardware of its own.
func (o *Options) asks(folder string) bool {
	if _, err := os.Stat(filepath.Join(folder, "partition")); err == nil {
		return false
	}
	switch {
	case text(folder, "hidden") == "1":
		return false // a way to a disk that has a device of its own
	case empty(folder):
		return false
	case slices.Contains(hypervisors, text(folder, "device/vendor")):
		return false
	}
	kind := text(folder, "device/type")
	return kind == "" || kind == "0" // TYPE_DISK of SCSI; NVMe and IDE have none
}

// empty says whether a device is a card reader without a card, or a dock without a disk.
func empty(folder string) bool {
	return text(folder, "removable") == "1" && text(folder, "size") == "0"
}

func (o *Options) target(name, path, kind string) target {
	folder := filepath.Join("/", o.Root, "sys/class/block", strings.ReplaceAll(name, "/", "!"))
	t := target{name: name, path: path, kind: kind, suspended: text(folder, "device/power/runtime_status") == "suspended"}
	if Direct(kind) {
		for _, file := range []string{"wwid", "device/wwid"} {
			if id := strings.ToLower(text(folder, file)); Unique(id) && t.wwid == "" {
				t.wwid = clean(id, 64)
			}
		}
	}
	return t
}

// text is a small file's, without the space around it; "" of one that cannot be read.
func text(folder, file string) string {
	f, err := os.Open(filepath.Join(folder, file))
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	var buffer [256]byte
	n, _ := f.Read(buffer[:])
	return string(bytes.TrimSpace(buffer[:n]))
}

// ErrNoDisk says that a machine has no disk of its own that could be asked.
var ErrNoDisk = errors.New("this machine has no disk that tells of its health: virtual disks have none")
