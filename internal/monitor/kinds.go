package monitor

import (
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
)

// kinds are those of disks, by name, each of which is read once: it cannot change while the disk is there. There are no more
// than there are disks.
type kinds map[string]string

// of is a disk's kind; read tells it, from two small files of /sys.
func (k *kinds) of(name string, there []sample.Disk, read func(...string) string) string {
	if kind, known := (*k)[name]; known {
		return kind
	}
	kind := read(name)
	if kind != disk.NoKind && isAmong(there, name) {
		if *k == nil {
			*k = kinds{}
		}
		(*k)[name] = kind
	}
	return kind
}

// keep forgets the disks that are not there any more: another one may get the name.
func (k kinds) keep(there []sample.Disk) {
	for name := range k {
		if !isAmong(there, name) {
			delete(k, name)
		}
	}
}

func isAmong(disks []sample.Disk, name string) bool {
	return slices.ContainsFunc(disks, func(d sample.Disk) bool { return d.Name == name })
}
