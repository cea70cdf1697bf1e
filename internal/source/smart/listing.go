package smart

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Place is where a disk is asked: its device, and of one behind a controller which of the controller's disks it is.
type Place struct {
	Device string // "sda"
	Behind string // "megaraid,0"; "" of a disk that the machine lists itself
}

// PlaceOf is the place of a disk that is asked with a type: one with a number in it names a disk of several, the others
// only say how to ask the one that is there.
func PlaceOf(device, kind string) Place {
	if !strings.Contains(kind, ",") {
		kind = ""
	}
	return Place{device, kind}
}

// Own says whether a disk there is asked without being named.
func (p Place) Own() bool { return p.Behind == "" && disks.MatchString(p.Device) }

// Listing is which disks are there, asked or not. The zero value knows of none and misses none.
type Listing struct {
	Complete bool             // There has all disks that the machine lists
	Present map[string]string // by name ("sda"), with the unique identifier that the kernel tells, or ""
	Missing map[string]bool   // by name: what the config has asked, and is not there
	Off     map[Place]bool    // what the config has not asked
	Err     error             // why not all could be listed
}

// Gone says whether a device that was asked is not there any more.
func (l *Listing) Gone(device string) bool {
	_, there := l.Present[device]
	return l.Missing[device] || l.Complete && !there && disks.MatchString(device)
}

// Listing looks which disks are there. With Options.Only it does not look.
func (o *Options) Listing() Listing {
	if o.Only {
		return Listing{}
	}
	own, err := o.own()
	l := Listing{Complete: err == nil, Present: map[string]string{}, Missing: map[string]bool{}, Off: map[Place]bool{}, Err: err}
	for _, name := range own {
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

// classes are the folders in which the kernel lists what a config may name. Other names, such as /dev/bus/0, are
// smartctl's own, and of links that lead nowhere: of those nobody can say that they are missing.
var classes = []struct {
	names  *regexp.Regexp
	folder string // below /sys/class
}{
	{disks, "block"}, {regexp.MustCompile(`^sg[0-9]{1,5}$`), "scsi_generic"}, {regexp.MustCompile(`^nvme[0-9]{1,4}$`), "nvme"},
}

// missing says whether a disk that the config names is not there: the kernel does not list it, or, where the kernel's list
// cannot be looked at, its device is gone.
func (o *Options) missing(name, path string) bool {
	for _, class := range classes {
		if !class.names.MatchString(name) {
			continue
		}
		folder := filepath.Join("/", o.Root, "sys/class", class.folder)
		if _, err := os.Stat(folder); err == nil {
			folder = filepath.Join(folder, name)
			_, err := os.Stat(folder)
			return errors.Is(err, fs.ErrNotExist) || empty(folder)
		}
		_, err := os.Stat(path)
		return errors.Is(err, fs.ErrNotExist)
	}
	return false
}

// Direct says whether a disk that is asked with a type is the one that the kernel has under its name, and not one behind
// a bridge or controller: then the kernel's identifier is the disk's.
func Direct(kind string) bool { return kind == "" || kind == "sat" || kind == "scsi" || kind == "nvme" }

// Unique says whether an identifier is one that only one disk has: a WWN, EUI or UUID. Cheap disks have one of zeros.
func Unique(id string) bool {
	for _, prefix := range []string{"naa.", "eui.", "uuid."} {
		if rest, ok := strings.CutPrefix(id, prefix); ok && rest != "" {
			if prefix == "naa." {
				rest = rest[1:] // what follows says only how the rest is to be read
			}
			return strings.Trim(rest, "0-") != ""
		}
	}
	return false
}

// Named is the identifier of a disk that has no other: its model and serial number; "" where it tells neither.
func Named(model, serial string) string {
	return strings.ReplaceAll(strings.Trim(model+"_"+serial, "_"), " ", "_")
}
