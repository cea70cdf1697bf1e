package smart

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// Disk is a configured disk.
type Disk struct {
	Device string // path below /dev: /dev/sda
	Type   string // smartctl's --device: "sat", "sat+megaraid,3"; "" lets smartctl detect it
	Off    bool   // it is not read
}

var (
	devicePath = regexp.MustCompile(`^/dev/[A-Za-z0-9][A-Za-z0-9._:+/-]{0,120}$`)
	deviceType = regexp.MustCompile(`^[a-z0-9][A-Za-z0-9+,/._-]{0,62}$`)

	// disks matches the kernel's names of devices that may have SMART. Others are virtual (vd, xvd, loop, zram, dm, md,
	// nbd, rbd, drbd), have none (mmcblk, pmem, fd) or are not disks (sr, st).
	disks = regexp.MustCompile(`^(?:sd[a-z]{1,4}|hd[a-z]|nvme[0-9]{1,4}n[0-9]{1,4})$`)
)

// Check returns an error for an invalid device or type, which smartctl could read as another argument or file. No shell
// is involved.
func (d Disk) Check() error {
	if !devicePath.MatchString(d.Device) || strings.Contains(d.Device, "..") || filepath.Clean(d.Device) != d.Device {
		return fmt.Errorf("%.80q is not the path of a disk: give one like /dev/sda", d.Device)
	}
	if d.Type != "" && !deviceType.MatchString(d.Type) {
		return fmt.Errorf("%.80q is not a type of disk: give one of smartctl --device, like sat or megaraid,0", d.Type)
	}
	return nil
}

// target is a disk to read.
type target struct {
	name      string // "sda"
	path      string // "/dev/sda"
	kind      string // smartctl's --device
	wwid      string // reported by the kernel, or ""; also "" for a disk behind a controller
	suspended bool   // the kernel has suspended it: opening it would wake it
}

// targets returns the whole disks of this machine and the configured disks. A machine's disk that is configured is only
// read as configured. The error is about an incomplete list of the machine's disks.
func (o *Options) targets() ([]target, error) {
	var found []target
	var ownDisks []string
	var err error
	if !o.Only {
		ownDisks, err = o.ownDisks()
	}
	named := map[string]bool{}
	for _, d := range o.Disks {
		named[o.resolve(d.Device)] = true
	}
	for _, name := range ownDisks {
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

// ownDisks returns the names of the listed disks that may have SMART.
func (o *Options) ownDisks() ([]string, error) {
	var names []string
	folder := filepath.Join("/", o.Root, "sys/class/block")
	entries, err := os.ReadDir(folder)
	if err != nil {
		err = fmt.Errorf("the machine's disks cannot be listed: %w", err)
	}
	for _, e := range entries {
		if name := e.Name(); disks.MatchString(name) && o.hasHardware(filepath.Join(folder, name)) {
			names = append(names, name)
		}
	}
	return names, err
}

// resolve returns a device's name after following links below /dev.
func (o *Options) resolve(path string) string {
	if isComplete, err := filepath.EvalSymlinks(path); err == nil && strings.HasPrefix(isComplete, "/dev/") {
		path = isComplete
	}
	return deviceName(path)
}

// hasHardware reports whether a device is a whole disk with hardware of its own.
func (o *Options) hasHardware(folder string) bool {
	if _, err := os.Stat(filepath.Join(folder, "partition")); err == nil {
		return false
	}
	switch {
	case readText(folder, "hidden") == "1":
		return false // a path to a disk that has another device
	case hasNoMedium(folder):
		return false
	case disk.IsHypervisor(readText(folder, "device/vendor")):
		return false
	}
	kind := readText(folder, "device/type")
	return kind == "" || kind == "0" // TYPE_DISK of SCSI; NVMe and IDE have none
}

// hasNoMedium reports whether a device is a card reader without a card, or a dock without a disk.
func hasNoMedium(folder string) bool {
	return readText(folder, "removable") == "1" && readText(folder, "size") == "0"
}

func (o *Options) target(name, path, kind string) target {
	folder := filepath.Join("/", o.Root, "sys/class/block", strings.ReplaceAll(name, "/", "!"))
	status := readText(folder, "device/power/runtime_status")
	t := target{name: name, path: path, kind: kind, suspended: status == "suspended"}
	if Direct(kind) {
		for _, file := range []string{"wwid", "device/wwid"} {
			if id := strings.ToLower(readText(folder, file)); Unique(id) && t.wwid == "" {
				t.wwid = clean(id, 64)
			}
		}
	}
	return t
}

// readText returns the text of a small file without surrounding space, or "" if it cannot be read.
func readText(folder, file string) string {
	return kernfile.Text(filepath.Join(folder, file))
}

// ErrNoDisk means that a machine has no disk with SMART.
var ErrNoDisk = errors.New("this machine has no disk that reports its health: virtual disks do not")

// Place is where a disk is read: its device, and which of a controller's disks it is.
type Place struct {
	Device string // "sda"
	Behind string // "megaraid,0"; "" for a disk that the machine lists
}

// PlaceOf returns the place of a disk with a type. A type with a number selects one of a controller's disks. Other
// types only say how to read the device.
func PlaceOf(device, kind string) Place {
	if !strings.Contains(kind, ",") {
		kind = ""
	}
	return Place{device, kind}
}

// Own reports whether the disk at a place is read without being configured.
func (p Place) Own() bool { return p.Behind == "" && disks.MatchString(p.Device) }

// Listing is the disks that are present, whether they are read or not. In the zero value none is missing.
type Listing struct {
	Complete bool              // Present has all disks of the machine
	Present  map[string]string // unique ID reported by the kernel, or "", by name ("sda")
	Missing  map[string]bool   // configured disks that are not present, by name
	Off      map[Place]bool    // disks that are switched off
	Err      error             // why the list is incomplete
}

// Gone reports whether a device is no longer present.
func (l *Listing) Gone(device string) bool {
	_, present := l.Present[device]
	return l.Missing[device] || l.Complete && !present && disks.MatchString(device)
}

// Listing lists the disks. With Options.Only it returns the zero value.
func (o *Options) Listing() Listing {
	if o.Only {
		return Listing{}
	}
	ownDisks, err := o.ownDisks()
	l := Listing{
		Complete: err == nil, Err: err,
		Present: map[string]string{}, Missing: map[string]bool{}, Off: map[Place]bool{},
	}
	for _, name := range ownDisks {
		l.Present[name] = o.target(name, "", "").wwid
	}
	for _, d := range o.Disks {
		name := o.resolve(d.Device)
		missing := o.missing(name, d.Device)
		switch {
		case d.Off:
			l.Off[PlaceOf(name, d.Type)] = true
		case missing:
			l.Missing[name] = true
		}
		if !missing {
			l.Present[name] = o.target(name, "", "").wwid
		}
	}
	return l
}

// classes are the folders of /sys/class with the devices that a config may name. Other names, such as /dev/bus/0, exist
// in smartctl only, or are broken links: they never count as missing.
var classes = []struct {
	names  *regexp.Regexp
	folder string // below /sys/class
}{
	{disks, "block"},
	{regexp.MustCompile(`^sg[0-9]{1,5}$`), "scsi_generic"},
	{regexp.MustCompile(`^nvme[0-9]{1,4}$`), "nvme"},
}

// missing reports whether a configured disk is missing: the kernel does not list it or, without the kernel's list, its
// device does not exist.
func (o *Options) missing(name, path string) bool {
	for _, class := range classes {
		if !class.names.MatchString(name) {
			continue
		}
		folder := filepath.Join("/", o.Root, "sys/class", class.folder)
		if _, err := os.Stat(folder); err == nil {
			folder = filepath.Join(folder, name)
			_, err := os.Stat(folder)
			return errors.Is(err, fs.ErrNotExist) || hasNoMedium(folder)
		}
		_, err := os.Stat(path)
		return errors.Is(err, fs.ErrNotExist)
	}
	return false
}

// Direct reports whether a type reads the disk with the kernel's name, not one behind a bridge or controller. The
// kernel's ID is then the disk's.
func Direct(kind string) bool { return kind == "" || kind == "sat" || kind == "scsi" || kind == "nvme" }

// Unique reports whether an ID is unique: a WWN, EUI or UUID that is not zero, as it is on some cheap disks.
func Unique(id string) bool {
	for _, prefix := range []string{"naa.", "eui.", "uuid."} {
		if rest, ok := strings.CutPrefix(id, prefix); ok && rest != "" {
			if prefix == "naa." {
				rest = rest[1:] // the format of the rest
			}
			return strings.Trim(rest, "0-") != ""
		}
	}
	return false
}

// Named returns the ID of a disk without a unique one: model and serial number, or "".
func Named(model, serial string) string {
	return strings.ReplaceAll(strings.Trim(model+"_"+serial, "_"), " ", "_")
}
