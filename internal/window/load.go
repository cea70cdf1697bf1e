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
	Device    string   // of which kind these are, or what stands in their place; "" where that is not known. Not recorded
}

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
	PID   int
	Name  string // what it calls itself
	Group string // short name of its cgroup: of a container the first digits of its ID; "" for none
	Bytes uint64 // fetched from storage
	Own   bool   // it is the window's job's
}

// load says what came from memory.
func (r *Report) load(h *history.History, m Machine) {
	if r.Kind != ModelLoad {
		return
	}
	r.Load = Load{Size: r.Seen.Size, Readers: m.Readers}
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

// fetched is how many bytes the window's job fetched from storage, where that is told.
func (r *Report) fetched(h *history.History, m Machine) (float64, bool) {
	if m.Scope.Job == "" || m.Silent {
		return 0, false
	}
	d, ok := h.Between(history.Key{Series: history.JobReadBytes, ID: m.Scope.Job}, r.from(), r.to())
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
	var read uint64
	for j := range r.Disks {
		read += r.Disks[j].ReadBytes
	}
	x := &r.Load.Readers[i]
	if x.Bytes < read/2 {
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
