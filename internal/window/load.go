package window

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// Seen is what was at a window's path when it began, except for After. A recording keeps it, because a replay
// cannot look again.
type Seen struct {
	Size      uint64   // bytes of the file, or of all regular files of the folder; 0 if unknown
	Cached    uint64   // bytes of these in the page cache, if HasCached
	HasCached bool     //
	Sampled   bool     // Cached may be extrapolated; no part of a recording
	After     uint64   // as Cached, when the window ended, if HasAfter: of a load from a mount without a disk
	HasAfter  bool     //
	Before    uint64   // bytes of these in the page cache after the last load of the path; 0 if unknown
	Layer     bool     // a file of a read-only layer of an overlay, as of a container's image
	Under     []string // leaf disks under the path, in order; empty if unknown or without any
	Above     []string // the devices between the path and these disks, the highest first
	Device    string   // the kind of these disks, or what is there instead; "" if unknown
}

// Devices that have no disk.
const (
	InMemory = "memory" // a file system in memory
	ZFS      = "zfs"    // it has a cache of its own, which the page cache and the counts of bytes do not show
)

// Load is what the report of a model load has besides its ledger.
type Load struct {
	Size      uint64   // as Seen.Size
	Hit       float64  // share of Size that came from the page cache, 0 to 1, if HasHit
	HasHit    bool     //
	Estimated bool     // Hit is computed from what the program fetched, not from what the page cache contained
	Readers   []Reader // the processes that fetched most from storage at the same time, most first

	Evicted   uint64        // bytes in the page cache after the last load of the path, and not at the begin of this one
	Movers    []Reader      // the processes that read and wrote most in between, most first
	Layer     bool          // as Seen.Layer
	IdleAhead time.Duration // for how long its disks had next to nothing to do before it, while its job ran
}

// Reader is a process that read from storage in a window. One that ended before the window is not known.
type Reader struct {
	PID   int    `json:"pid"`
	Name  string `json:"name,omitempty"`   // the command name
	Group string `json:"cgroup,omitempty"` // short name of its cgroup: for a container the first digits of its ID
	Bytes uint64 `json:"read_bytes"`       // fetched from storage
	Own   bool   `json:"own,omitempty"`    // it belongs to the window's job

	Before bool `json:"before,omitempty"` // read and written before the load, since the last one of its path
}

// load returns how much of a model load came from memory.
func (v *view) load(f *Facts) Load {
	if v.Kind != ModelLoad {
		return Load{}
	}
	seen := &v.Seen
	l := Load{Size: seen.Size, Readers: v.readers(f), Layer: seen.Layer, IdleAhead: v.idleAhead()}
	if seen.HasCached && seen.Before > seen.Cached {
		l.Evicted, l.Movers = seen.Before-seen.Cached, v.movers()
	}
	fetched, known := v.fetched()
	switch size := float64(seen.Size); {
	case seen.Size == 0, seen.Device == ZFS:
	case seen.HasCached:
		l.Hit = min(1, float64(seen.Cached)/size)
		// A job that fetched more than was missing read past the page cache, or had read before that was looked at.
		l.HasHit = !known || l.Hit+fetched/size <= 1+minMovedShare
	case known && (len(seen.Under) > 0 || seen.Device == "" || seen.Device == InMemory): // a server's are not counted
		l.Hit, l.HasHit, l.Estimated = max(0, 1-fetched/size), true, true
	}
	return l
}

// readers drops the processes that cannot have fetched all of their bytes from a disk: a parent that waits for a child
// inherits the child's count, and reads over a network use no disk. If the window's own files may be on a network, it
// keeps all of them.
func (v *view) readers(f *Facts) []Reader {
	all := len(v.machine.Leaves) == 0 || len(f.Mounts) > 0
	return slices.DeleteFunc(slices.Clone(v.machine.Readers), func(x Reader) bool {
		return x.Before || !all && !f.CanHaveRead(x.Bytes)
	})
}

// movers are the processes that read and wrote before the load.
func (v *view) movers() (all []Reader) {
	for _, x := range v.machine.Readers {
		if x.Before {
			x.Before = false // where they are says so
			all = append(all, x)
		}
	}
	return all
}

// idleAhead returns for how long the disks under the load's path had next to nothing to do before it, while its job was
// followed: a minute at most, 0 if one of them worked. In that time, the model could have been read.
func (v *view) idleAhead() time.Duration {
	if len(v.Seen.Under) == 0 {
		return 0
	}
	ahead := maxAhead
	for range aheadTries {
		from := history.Point{At: v.Start.Mono - ahead}
		job := history.Key{Series: history.JobReadBytes, ID: v.machine.Target.Job}
		_, idle := v.history.Between(job, from, v.from())
		for _, disk := range v.Seen.Under {
			d, known := v.diskBetween(history.DiskReadIOs, disk, from, v.from())
			idle = idle && known && !d.Partial && d.Lacks&sample.LacksIOTicks == 0 && d.BusyRatio <= maxBusy
		}
		if idle {
			return ahead
		}
		ahead /= 2
	}
	return 0
}

// readMemory reports whether the window is a load whose data was in memory and whose job moved next to nothing. It
// cannot have waited for storage: the evidence for that comes from other processes.
func (v *view) readMemory() bool {
	inMemory := v.Seen.Device == InMemory || v.Seen.HasCached && v.Seen.Cached >= v.Seen.Size
	if v.Kind != ModelLoad || v.Seen.Size == 0 || !inMemory {
		return false
	}
	fetched, known := v.fetched()
	stored, _ := v.between(history.JobWriteBytes, v.machine.Target.Job)
	return known && fetched+stored.Value < min(maxMemoryShare*float64(v.Seen.Size), maxMemoryBytes)
}
