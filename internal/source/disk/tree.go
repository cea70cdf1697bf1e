package disk

import (
	"github.com/stallspan/stallspan/internal/sample"
)

// tree says which of a list of devices are leaves: whole disks that stand on nothing else. It stays right until the
// set of devices changes, since a device does not turn into one of another sort; but for loop devices, see loop.
type tree struct {
	leaf      []bool // by place in the list
	multipath []multipath
	fromNames bool // /sys was missing, so names had to do
}

// multipath is an NVMe disk that is reached through hidden devices. Linux 5 counts on these paths alone and leaves
// the disk's own counters at zero, Linux since 2023 counts on both: only one side may be summed up.
type multipath struct {
	head  int // places in the list
	paths []int
}

// tree looks every name up. Where /sys has no block devices at all the names have to do; one device that /sys does
// not have was plugged in or out between two files, and counts by its name too.
func (f sysfs) tree(names []string) tree {
	place := make(map[string]int, len(names))
	for i, name := range names {
		place[name] = i
	}
	t := tree{leaf: make([]bool, len(names)), fromNames: len(names) > 0 && !f.present()}
	paths := make(map[int][]int)
	for i, name := range names {
		head, hasHead := place[headOf(name)]
		n := node{}
		if !t.fromNames {
			n = f.node(name)
		}
		if n.known {
			t.leaf[i] = n.leaf()
			hasHead = hasHead && n.hidden
		} else {
			_, isPart := place[partOf(name)]
			t.leaf[i] = !stacked(name) && !isPart && headOf(name) == ""
		}
		if place[name] != i { // a name twice: no device counts twice
			t.leaf[i], hasHead = false, false
		}
		if hasHead {
			paths[head] = append(paths[head], i)
		}
	}
	for i := range names { // in the list's order
		if len(paths[i]) > 0 {
			t.multipath = append(t.multipath, multipath{head: i, paths: paths[i]})
		}
	}
	return t
}

// mark sets Leaf on a reading of the devices that t was made for.
func (t *tree) mark(disks []sample.Disk) {
	for i := range disks {
		disks[i].Leaf = t.leaf[i]
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

// idle tells whether a device has counted no read and no write so far.
func idle(d *sample.Disk) bool { return d.ReadIOs == 0 && d.WriteIOs == 0 }
