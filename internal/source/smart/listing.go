package smart

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

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
