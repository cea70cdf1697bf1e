package sampling

import (
	"slices"
	"sync"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
)

// diskKinds caches the kind of each disk, by name. A kind cannot change while the disk is present. The zero value is
// ready, and safe for concurrent use.
type diskKinds struct {
	mu    sync.Mutex
	known map[string]string
}

// of returns the kind of a disk. read reads it from two small files of /sys.
func (k *diskKinds) of(name string, read func(...string) string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if kind, ok := k.known[name]; ok {
		return kind
	}
	kind := read(name)
	if kind != disk.NoKind {
		if k.known == nil {
			k.known = map[string]string{}
		}
		k.known[name] = kind
	}
	return kind
}

// retain drops the disks that are not present any more: another disk may get the name.
func (k *diskKinds) retain(present []sample.Disk) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name := range k.known {
		if !slices.ContainsFunc(present, func(d sample.Disk) bool { return d.Name == name }) {
			delete(k.known, name)
		}
	}
}
