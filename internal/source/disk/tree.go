package disk

import (
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
)

// tree marks the leaves of a list of devices: whole disks that are not stacked on others. It also has the layers above
// them. It stays valid until the set of devices changes, because devices do not change their kind. Loop devices are the
// exception: see loop.
type tree struct {
	leaf      []bool // by index in the list
	layer     []bool
	on        []string // sample.Disk.On of a layer
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
	t := tree{
		leaf: make([]bool, len(names)), layer: make([]bool, len(names)), on: make([]string, len(names)),
		fromNames: len(names) > 0 && !f.present(),
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
