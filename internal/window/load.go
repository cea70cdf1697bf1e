package window

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/history"
)

// Seen is what lay at a window's path when it began. A recording keeps it, since it cannot be seen again later.
type Seen struct {
	Size      uint64   // bytes of the file, or of all regular files of the folder; 0 where that is not known
	Cached    uint64   // bytes of them that the page cache held, where HasCached
	HasCached bool     //
	Under     []string // leaf disks under the path, in order; empty where it is not known or has none
	Device    string   // of which kind these are, or what stands in their place; "" where that is not known
}

// InMemory is the Device of a file system that has no other storage than memory.
const InMemory = "memory"

// Load is what the report of a model load says beside its ledger.
type Load struct {
	Size      uint64   // as Seen.Size
	Hit       float64  // share of Size that came from the page cache, 0 to 1, where HasHit
	HasHit    bool     //
	Estimated bool     // Hit follows from what the program fetched, not from what the page cache held
	Readers   []Reader // the processes of this machine that fetched most from storage meanwhile, the first in front
}

// Reader is a process that read from storage during a window. One that ended before the window is not known.
type Reader struct {
	PID   int    `json:"pid"`
	Name  string `json:"name,omitempty"`   // what it calls itself
	Group string `json:"cgroup,omitempty"` // short name of its cgroup: of a container the first digits of its ID
	Bytes uint64 `json:"read_bytes"`       // fetched from storage
	Own   bool   `json:"own,omitempty"`    // it belongs to the window's job
}

// load says what came from memory.
func (r *Report) load(h *history.History, m Machine) {
	if r.Kind != ModelLoad {
		return
	}
	r.Load = Load{Size: r.Seen.Size, Readers: r.readers(m)}
	if r.Seen.Size == 0 {
		return
	}
	size := float64(r.Seen.Size)
	if r.Seen.HasCached {
		r.Load.Hit, r.Load.HasHit = min(1, float64(r.Seen.Cached)/size), true
		return
	}
	if fetched, known := r.fetched(h, m); known {
		r.Load.Hit, r.Load.HasHit, r.Load.Estimated = max(0, 1-fetched/size), true, true
	}
}

// readers are the processes that can have fetched what they are said to. One that waited for a child which nobody looked at
// is said to have fetched what that did, and one that reads over a network is no matter of the disks. The looks at both ends
// may be a tenth of the window off. Where the window's own file system may be a network's, all are told.
func (r *Report) readers(m Machine) []Reader {
	if len(m.Leaves) == 0 || len(r.Mounts) > 0 {
		return m.Readers
	}
	return slices.DeleteFunc(slices.Clone(m.Readers), func(x Reader) bool { return !r.canHaveRead(x.Bytes) })
}

func (r *Report) canHaveRead(bytes uint64) bool {
	read := r.readByAll()
	return bytes <= read+read/10
}

// readByAll is what the disks read, for anyone.
func (r *Report) readByAll() (bytes uint64) {
	for i := range r.Disks {
		bytes += r.Disks[i].ReadBytes
	}
	return bytes
}

// Bounds of what a load may move that did not wait for storage.
const (
	littleShare = 0.01 // of its size
	littleBytes = 4 << 20
)

// memoryWaitsForNothing says that a load of what lay in memory, whose job moved next to nothing, cannot have waited for
// storage: what looks like that was others' waiting. It counts as other.
func (r *Report) memoryWaitsForNothing(h *history.History, m Machine) {
	inMemory := r.Seen.Device == InMemory || r.Seen.HasCached && r.Seen.Cached >= r.Seen.Size
	if r.Kind != ModelLoad || r.Seen.Size == 0 || !inMemory {
		return
	}
	fetched, known := r.fetched(h, m)
	stored, _ := h.Between(history.Key{Series: history.JobWriteBytes, ID: m.Target.Job}, r.from(), r.to())
	if !known || fetched+stored.Value >= min(littleShare*float64(r.Seen.Size), littleBytes) {
		return
	}
	r.Other += r.Storage
	r.Storage, r.Gain, r.waitless = 0, 0, true
}

// fetched is how many bytes the window's job fetched from storage, where that is told.
func (r *Report) fetched(h *history.History, m Machine) (float64, bool) {
	if m.Target.Job == "" || m.Silent {
		return 0, false
	}
	d, ok := h.Between(history.Key{Series: history.JobReadBytes, ID: m.Target.Job}, r.from(), r.to())
	return d.Value, ok && !d.Reset
}

// readFrom lists the disks that the window's own reads can have come from: those under its path, and where it named none
// those that read at least a tenth of what the job fetched. A window whose reads are not told apart from others' has only
// its path to go by.
func (r *Report) readFrom(h *history.History, m Machine) []string {
	fetched, known := r.fetched(h, m)
	if known && fetched == 0 || !known && len(r.Seen.Under) == 0 {
		return nil
	}
	var names []string
	for i := range r.Disks {
		d := &r.Disks[i]
		if d.ReadBytes == 0 || len(r.Seen.Under) > 0 && !d.Under || len(r.Seen.Under) == 0 && float64(d.ReadBytes) < fetched/10 {
			continue
		}
		names = append(names, d.Name)
	}
	return names
}

// ReadFrom is the From of a report on w, without the rest of it.
func ReadFrom(h *history.History, w *Window, m Machine) []string {
	r := &Report{Window: *w}
	r.disks(h, m)
	r.mounts(h, m)
	return r.readFrom(h, m)
}

// warmth says in words how much of a load came from memory; "" where that is not known.
func (r *Report) warmth() string {
	if !r.Load.HasHit {
		return ""
	}
	about := ""
	if r.Load.Estimated {
		about = "about "
	}
	whole := size(r.Load.Size)
	switch {
	case r.Load.Hit >= 0.995:
		return "; " + about + "all of its " + whole + " came from memory"
	case r.Load.Hit < 0.005:
		return "; " + about + "none of its " + whole + " came from memory"
	}
	unit := whole[strings.LastIndexByte(whole, ' ')+1:]
	part := float64(r.Load.Size) * r.Load.Hit / units[unit]
	return fmt.Sprintf("; %s%.1f of %s came from memory", about, part, whole)
}

var units = map[string]float64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

// neighbour names who read most of those that are not the window's job, where that was at least half as much as the disks
// under it read.
func (r *Report) neighbour() string {
	i := slices.IndexFunc(r.Load.Readers, func(x Reader) bool { return !x.Own })
	if i < 0 || len(r.Disks) == 0 {
		return ""
	}
	x := &r.Load.Readers[i]
	if x.Bytes < r.readByAll()/2 || !r.canHaveRead(x.Bytes) {
		return ""
	}
	name := fmt.Sprintf("process %d", x.PID)
	if x.Name != "" {
		name = fmt.Sprintf("%s (process %d)", x.Name, x.PID)
	}
	if x.Group != "" {
		name += " of " + x.Group
	}
	return "; " + name + " read " + size(x.Bytes) + " meanwhile"
}
