package disk

import (
	"os"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/mount"
)

// tree marks the leaves of a list of devices: whole disks that are not stacked on others. It also has the layers above
// them. It stays valid until the set of devices changes, because devices do not change their kind. Loop devices are the
// exception: see loop.
type tree struct {
	leaf      []bool // by index in the list
	layer     []bool
	on        []string // sample.Disk.On of a layer
	uncounted []bool   // sample.Uncounted
	multipath []multipath
	fromNames bool // /sys is missing: leaves are found by name
}

// multipath is an NVMe disk with hidden path devices. Linux 5 counts on the paths only and leaves the counters of the
// disk at zero. Since 2023 Linux counts on both. Only one side may be a leaf.
type multipath struct {
	head  int // indices in the list
	paths []int
}

// tree looks up every name. Without block devices in /sys it uses the names only. A single device that is missing in
// /sys came or went between two reads, and is also judged by its name.
func (f sysfs) tree(names []string) tree {
	place := make(map[string]int, len(names))
	for i, name := range slices.Backward(names) { // of a duplicate name the first device counts, as in a DiskNormalizer
		place[name] = i
	}
	_, absent := os.Stat(f.block())
	t := tree{
		leaf: make([]bool, len(names)), layer: make([]bool, len(names)), on: make([]string, len(names)),
		uncounted: make([]bool, len(names)),
		fromNames: len(names) > 0 && absent != nil,
	}
	paths := make(map[int][]int)
	for i, name := range names {
		head, hasHead := place[headOf(name)]
		n := node{}
		if !t.fromNames {
			n = f.node(name)
		}
		t.layer[i] = place[name] == i && !n.partition && (len(n.slaves) > 0 || stacked(name) && !inMemory(name))
		if n.known {
			t.leaf[i], t.on[i] = n.leaf(), f.wholes(n.slaves)
			hasHead = hasHead && n.hidden
			t.uncounted[i] = t.leaf[i] && f.text(name, "queue/iostats") == "0"
		} else {
			_, isPart := place[partOf(name)]
			t.leaf[i] = !stacked(name) && !isPart && headOf(name) == ""
		}
		if place[name] != i { // a duplicate name: no device counts twice
			t.leaf[i], hasHead = false, false
		}
		if hasHead {
			paths[head] = append(paths[head], i)
		}
	}
	for i := range names { // in the order of the list
		if len(paths[i]) > 0 {
			t.multipath = append(t.multipath, multipath{head: i, paths: paths[i]})
		}
	}
	return t
}

// mark sets Leaf in a reading of the devices of t.
func (t *tree) mark(disks []sample.Disk) {
	for i := range disks {
		disks[i].Leaf = t.leaf[i]
		if disks[i].Layer = t.layer[i]; disks[i].Layer {
			disks[i].On = t.on[i]
		}
		if t.uncounted[i] {
			disks[i].Has |= sample.Uncounted | sample.LacksTimes
		}
	}
	for _, m := range t.multipath {
		if !idle(&disks[m.head]) {
			continue
		}
		counted := false
		for _, path := range m.paths {
			counted = counted || !idle(&disks[path])
		}
		if counted {
			disks[m.head].Leaf = false
			for _, path := range m.paths {
				disks[path].Leaf = true
			}
		}
	}
}

// idle reports whether a device has counted no read and no write so far.
func idle(d *sample.Disk) bool { return d.ReadIOs == 0 && d.WriteIOs == 0 }

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
	d := descent{sys: s.sys, mounts: mounts, seen: make(map[string]bool), named: true}
	d.file(backing, 0)
	s.tree.on[i] = s.sys.wholes(d.found.Disks) // those directly under the file, by names like served; none in memory
}

// served compares names only, which the kernel prints without symbolic links: a hung server must not block it.
func served(mounts []mount.Entry, backing string) bool {
	on, found := mount.Covering(mounts, strings.TrimSuffix(backing, " (deleted)"))
	kind := mount.Kind(on.Type)
	return found && (kind == mount.Fuse || kind == mount.Network) && !mount.HasBlockDevice(on.Mount)
}
