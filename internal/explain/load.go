package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/window"
)

// warmth returns how much of a load came from memory; "" if unknown, unless the file system hides it.
func warmth(r *window.Report) string {
	if r.Kind == window.ModelLoad && r.Seen.Device == window.ZFS {
		return "; what came from the cache of ZFS (ARC) is not known"
	}
	if !r.Load.HasHit {
		return ""
	}
	about := ""
	if r.Load.Estimated {
		about = "about "
	}
	whole := Size(r.Load.Size)
	switch {
	case r.Load.Hit >= 0.995:
		return "; " + about + "all of its " + whole + " came from memory"
	case r.Load.Hit < 0.005:
		return "; " + about + "none of its " + whole + " came from memory"
	}
	unit := whole[strings.LastIndexByte(whole, ' ')+1:]
	part := float64(r.Load.Size) * r.Load.Hit / float64(uint64(1)<<(10*slices.Index(units[:], unit)))
	return fmt.Sprintf("; %s%.1f of %s came from memory", about, part, whole)
}

// faulted says what page faults cost a load; "" for little, or if that is not known.
func faulted(r *window.Report) string {
	f := r.Faults
	if f == nil {
		return ""
	}
	kernel := f.Kernel.Seconds()
	return fmt.Sprintf("; the kernel worked at most %s on %d page faults (%s each), %s of its time on the CPU",
		Duration(kernel), f.Count, Duration(kernel/float64(f.Count)), percent(f.Share))
}

// readCalls is for a load that maps its file. Large reads copy as much, and take no fault for each page of the file;
// those of memory that the load fills stay, so that the gain is a bound.
func (x *situation) readCalls() string {
	return "Read the file with large read calls instead of mapping it" + inPython(x.Report, "torch.load with mmap=False") +
		", or have the kernel map it in one call (MAP_POPULATE): without the faults, at most " +
		times(1/(1-min(x.shares.CPU*x.Faults.Share, nearlyAll))) + " faster; stallspan bench load FILE measures both."
}

// neighbor names the process of another job that read most, if it read at least half as much as the disks of the load
// did, if these can have served both, and unless it is known that the load did not wait for storage.
func neighbor(r *window.Report) string {
	i := slices.IndexFunc(r.Load.Readers, func(x window.Reader) bool { return !x.Own })
	spared := r.Split && percent(r.Shares().Storage) == percent(0)
	if i < 0 || len(r.Disks) == 0 || spared {
		return ""
	}
	x := &r.Load.Readers[i]
	read := r.BytesReadFrom()
	both := x.Bytes
	for _, own := range r.Load.Readers {
		if own.Own {
			both += own.Bytes
		}
	}
	if x.Bytes < read/2 || both > read+read/10 { // the readings at both ends may be a tenth of the window off
		return ""
	}
	return "; " + nameOfReader(x) + " read " + Size(x.Bytes) + " at the same time"
}

// mover names the process that read and wrote most since the last load, if that explains what has left the memory.
func mover(r *window.Report) string {
	if r.Seen.Dropped >= r.Load.Evicted/2 {
		return " (memory was not short: since then a program dropped it, with posix_fadvise as vmtouch -e does, with " +
			"drop_caches or by deleting files)"
	}
	if len(r.Load.Movers) == 0 || r.Load.Movers[0].Bytes < r.Load.Evicted/2 {
		return ""
	}
	x := &r.Load.Movers[0]
	return " (since then " + nameOfReader(x) + " has read and written " + Size(x.Bytes) + ")"
}

func nameOfReader(x *window.Reader) string {
	name := fmt.Sprintf("process %d", x.PID)
	if x.Name != "" {
		name = fmt.Sprintf("%s (process %d)", x.Name, x.PID)
	}
	if x.Group != "" {
		name += " of " + x.Group
	}
	return name
}
