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

// InMemory is the Device of a file system in memory.
const InMemory = "memory"

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

// load sets how much of a model load came from memory.
func (b *builder) load() {
	if b.Kind != ModelLoad {
		return
	}
	b.Load = Load{Size: b.Seen.Size, Readers: b.readers(), Layer: b.Seen.Layer, IdleAhead: b.idleAhead()}
	if b.Seen.HasCached && b.Seen.Before > b.Seen.Cached {
		b.Load.Evicted, b.Load.Movers = b.Seen.Before-b.Seen.Cached, b.movers()
	}
	if b.Seen.Size == 0 {
		return
	}
	size := float64(b.Seen.Size)
	if b.Seen.HasCached {
		b.Load.Hit, b.Load.HasHit = min(1, float64(b.Seen.Cached)/size), true
		return
	}
	if fetched, known := b.fetched(); known {
		b.Load.Hit, b.Load.HasHit, b.Load.Estimated = max(0, 1-fetched/size), true, true
	}
}

// readers drops the processes that cannot have fetched all of their bytes from a disk: a parent that waits for a child
// inherits the child's count, and reads over a network use no disk. If the window's own files may be on a network, it
// keeps all of them.
func (b *builder) readers() []Reader {
	all := len(b.machine.Leaves) == 0 || len(b.Mounts) > 0
	return slices.DeleteFunc(slices.Clone(b.machine.Readers), func(x Reader) bool {
		return x.Before || !all && !b.CanHaveRead(x.Bytes)
	})
}

// movers are the processes that read and wrote before the load.
func (b *builder) movers() []Reader {
	return slices.DeleteFunc(slices.Clone(b.machine.Readers), func(x Reader) bool { return !x.Before })
}

// idleAhead returns for how long the disks under the load's path had next to nothing to do before it, while its job was
// followed: a minute at most, 0 if one of them worked. In that time, the model could have been read.
func (b *builder) idleAhead() time.Duration {
	if len(b.Seen.Under) == 0 {
		return 0
	}
	ahead := maxAhead
	for range aheadTries {
		from := history.Point{At: b.Start.Mono - ahead}
		job := history.Key{Series: history.JobReadBytes, ID: b.machine.Target.Job}
		_, idle := b.history.Between(job, from, b.from())
		for _, disk := range b.Seen.Under {
			d, known := b.diskBetween(history.DiskReadIOs, disk, from, b.from())
			idle = idle && known && !d.Partial && d.Lacks&sample.LacksIOTicks == 0 && d.BusyRatio <= maxBusy
		}
		if idle {
			return ahead
		}
		ahead /= 2
	}
	return 0
}

// waitsForMemory counts the storage stall of a load as other, if its data was in memory and its job moved next to
// nothing. Such a load cannot have waited for storage: the evidence comes from other processes.
func (b *builder) waitsForMemory() {
	inMemory := b.Seen.Device == InMemory || b.Seen.HasCached && b.Seen.Cached >= b.Seen.Size
	if b.Kind != ModelLoad || b.Seen.Size == 0 || !inMemory {
		return
	}
	fetched, known := b.fetched()
	stored, _ := b.between(history.JobWriteBytes, b.machine.Target.Job)
	if !known || fetched+stored.Value >= min(maxMemoryShare*float64(b.Seen.Size), maxMemoryBytes) {
		return
	}
	b.Other += b.Storage
	b.Storage, b.Gain, b.FromMemory = 0, 0, true
}
