package disk

import (
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/mount"
)

// loop is a loop device of a reading. It is a leaf if its file lies on no device of this machine: a FUSE program or
// another machine serves the file, and no other device counts the waiting. It may get another file at any time, without
// a change of the set of devices.
type loop struct {
	place   int    // index in the list of devices
	backing string // its file at the last lookup
	count   uint64 // operations, at the last reading
	moving  bool   // operations between the last two readings
}

// loops returns the loop devices of a list and marks the leaves among them.
func (s *Source) loops(disks []sample.Disk) []loop {
	var found []loop
	for i := range disks {
		if s.tree.fromNames || !numbered(s.known[i], "loop") || slices.Index(s.known, s.known[i]) < i {
			continue
		}
		backing := s.sys.node(s.known[i]).backing
		found = append(found, loop{place: i, backing: backing, count: disks[i].ReadIOs + disks[i].WriteIOs})
		s.place(i, backing)
	}
	return found
}

// follow looks up a loop device again when it becomes active, because it may have another file.
func (s *Source) follow(disks []sample.Disk) {
	for i := range s.looped {
		l := &s.looped[i]
		count := disks[l.place].ReadIOs + disks[l.place].WriteIOs
		moved := count != l.count
		if moved && !l.moving {
			if backing := s.sys.node(s.known[l.place]).backing; backing != l.backing {
				l.backing = backing
				s.place(l.place, backing)
			}
		}
		l.count, l.moving = count, moved
	}
}

// place marks a loop device: a leaf if a program or another machine serves its file, else a layer if it has a file. It
// is no leaf if that is not known.
func (s *Source) place(i int, backing string) {
	s.tree.leaf[i], s.tree.layer[i], s.tree.on[i] = false, backing != "", ""
	if backing == "" {
		return
	}
	mounts, _ := s.mounts()
	if served(mounts, backing) {
		s.tree.leaf[i], s.tree.layer[i] = true, false
		return
	}
	s.tree.on[i] = s.sys.below(mounts, backing)
}

// served compares names only, which the kernel prints without symbolic links: a hung server must not block it.
func served(mounts []mount.Entry, backing string) bool {
	on, found := mount.Covering(mounts, strings.TrimSuffix(backing, " (deleted)"))
	kind := mount.Kind(on.Type)
	return found && (kind == mount.Fuse || kind == mount.Network) && !mount.HasBlockDevice(on.Mount)
}

// below returns the whole devices directly under a file, by names like served. It returns none for a file in memory.
func (f sysfs) below(mounts []mount.Entry, backing string) string {
	d := descent{sys: f, mounts: mounts, seen: make(map[string]bool), named: true}
	d.file(backing, 0)
	return f.wholes(d.found.Disks)
}
