package disk

import (
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/mount"
)

// loop is a loop device of a reading. It is a leaf while no device of this machine lies under its file: a FUSE program
// or another machine serves it, and then what it waits for shows in no other device's counters. It may be given another
// file at any time, without a change of the set of devices.
type loop struct {
	place   int    // in the list of devices
	backing string // the file, when it was looked up last
	count   uint64 // operations, at the last reading
	moving  bool   // there were some between the last two
}

// loops finds the loop devices of a list, and marks the leaves among them.
func (s *Source) loops(disks []sample.Disk) []loop {
	var found []loop
	for i := range disks {
		if s.tree.fromNames || !numbered(s.known[i], "loop") || slices.Index(s.known, s.known[i]) < i {
			continue
		}
		backing := s.sys.node(s.known[i]).backing
		found = append(found, loop{place: i, backing: backing, count: disks[i].ReadIOs + disks[i].WriteIOs})
		s.tree.leaf[i] = s.served(backing)
	}
	return found
}

// follow looks a loop device up again when it begins to do something, for then it may have another file.
func (s *Source) follow(disks []sample.Disk) {
	for i := range s.looped {
		l := &s.looped[i]
		count := disks[l.place].ReadIOs + disks[l.place].WriteIOs
		moved := count != l.count
		if moved && !l.moving {
			if backing := s.sys.node(s.known[l.place]).backing; backing != l.backing {
				l.backing = backing
				s.tree.leaf[l.place] = s.served(backing)
			}
		}
		l.count, l.moving = count, moved
	}
}

// served tells whether a loop device's file is served by a program or by another machine. What cannot be found out is
// not.
func (s *Source) served(backing string) bool {
	if backing == "" {
		return false
	}
	mounts, _ := s.mounts()
	return served(mounts, backing)
}

// served goes by names alone, which the kernel gives without symbolic links: a server that hangs must not be asked.
func served(mounts []mount.Entry, backing string) bool {
	on, found := mount.Covering(mounts, strings.TrimSuffix(backing, " (deleted)"))
	kind := mount.Kind(on.Type)
	return found && (kind == mount.Fuse || kind == mount.Network) && !mount.HasBlockDevice(on.Mount)
}
