//go:build linux

package joblog

import (
	"math"
	"sort"
	"strings"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/lab/scenario"
)

// depth limits how far a wait is followed from thread to thread.
const depth = 8

// Divided is the truth of a window, in seconds. The last two are in none of the parts.
type Divided struct {
	scenario.Parts
	Late  float64 // CPU or other
	Ready float64 // storage or CPU
}

// walker divides the time in which an accelerator idled.
type walker struct {
	threads map[string][]span
	cost    map[Kind]float64 // what a byte costs from memory, in ns
	sum     Divided          // in ns
}

// Truth returns the parts of a window in seconds, summed over its accelerators; drivers are the threads that drive
// them, "main" alone without one. At each moment when the accelerator idles, the thread that drives it
//
//   - reads or writes: storage, except for what the same call costs from memory, which is CPU;
//   - waits for another thread: whatever that one does, and so on;
//   - receives data from a server: other, and network within it, except for the CPU time that the thread logs, or else
//     what the same call costs from a fast one;
//   - waits for something else: other;
//   - does none of these: CPU. It may be ready and have no core.
//
// Two times may count as one part or the other. late: the thread still waits for the accelerator, which has ended,
// because its timer is late or it has no core; or two threads wait for each other. ready: a read or write is over or
// pauses, and the thread has no core.
//
// cost is nil for a window that read nothing from storage: then all reading is CPU.
func Truth(l *Log, drivers []string, gpus bool, from, to int64, cost map[Kind]float64) Divided {
	w := walker{threads: l.threads, cost: cost}
	for gpu, driver := range drivers {
		at := from
		if gpus {
			for _, b := range l.busy[gpu] {
				start, end := max(b.start, from), min(b.end, to)
				if start >= end {
					continue
				}
				w.idle(driver, at, start, 0)
				w.sum.Busy += float64(end - start)
				at = end
			}
		}
		w.idle(driver, at, to, 0)
	}
	const ns = 1e9
	p := w.sum
	return Divided{
		Parts: scenario.Parts{Busy: p.Busy / ns, Storage: p.Storage / ns, CPU: p.CPU / ns, Other: p.Other / ns,
			Network: p.Network / ns},
		Late: p.Late / ns, Ready: p.Ready / ns,
	}
}

// idle divides the time from a to b by what a thread did.
func (w *walker) idle(thread string, a, b int64, deep int) {
	if a >= b {
		return
	}
	if deep > depth { // threads wait for each other: a message is on its way, or what answers it logs nothing
		w.sum.Late += float64(b - a)
		return
	}
	spans := w.threads[thread]
	i := sort.Search(len(spans), func(i int) bool { return spans[i].end > a })
	for ; i < len(spans) && spans[i].start < b; i++ {
		s := spans[i]
		start, end := max(s.start, a), min(s.end, b)
		if start >= end {
			continue // it began before the one before ended: the clock of one thread does not allow that
		}
		w.sum.CPU += float64(start - a)
		w.within(s, start, end, deep)
		a = end
	}
	w.sum.CPU += float64(max(b-a, 0))
}

// within adds the part of a span from start to end.
func (w *walker) within(s span, start, end int64, deep int) {
	switch s.kind {
	case waiting:
		w.idle(s.target, start, end, deep+1)
	case other:
		w.sum.Other += float64(end - start)
	case reading, writing, fetched:
		if w.cost == nil && (s.kind != fetched || s.cpu < 0) {
			w.sum.CPU += float64(end - start)
			return
		}
		// What the call costs from memory is taken from its end.
		cost := int64(w.cost[s.kind] * float64(s.bytes))
		if s.kind == fetched && s.cpu >= 0 {
			cost = s.cpu
		}
		cut := max(s.end-cost, s.start)
		stored := float64(max(min(end, cut)-start, 0))
		ready := stored * min(float64(s.ready)/float64(max(cut-s.start, 1)), 1)
		if s.kind == fetched {
			w.sum.Other += stored - ready
			w.sum.Network += stored - ready
			w.sum.CPU += ready
		} else {
			w.sum.Storage += stored - ready
			w.sum.Ready += ready
		}
		w.sum.CPU += float64(max(end-max(start, cut), 0))
	default: // the accelerator
		w.sum.Late += float64(end - start)
	}
}

// Costs returns what a byte cost to read and write in the windows from memory, in ns.
func Costs(l *Log, warm []Window) map[Kind]float64 {
	time, bytes := map[Kind]float64{}, map[Kind]float64{}
	for _, spans := range l.threads {
		for _, s := range spans {
			if s.kind != reading && s.kind != writing && s.kind != fetched {
				continue
			}
			for _, w := range warm {
				if s.start >= w.Start && s.end <= w.End {
					time[s.kind] += float64(s.end - s.start - s.ready)
					bytes[s.kind] += float64(s.bytes)
				}
			}
		}
	}
	cost := map[Kind]float64{}
	for k, b := range bytes {
		if b > 0 {
			cost[k] = time[k] / b
		}
	}
	return cost
}

// Drivers returns the threads that drive the accelerators: "rank0", "rank1" and so on, or else "main".
func Drivers(l *Log) (names []string) {
	for name := range l.threads {
		if strings.HasPrefix(name, "rank") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return []string{"main"}
	}
	sort.Strings(names)
	return names
}

// With adds what may count as one part or the other: so much of late is other, and so much of ready is CPU.
func (d Divided) with(late, ready float64) scenario.Parts {
	p := d.Parts
	p.Other += d.Late * late
	p.CPU += d.Late*(1-late) + d.Ready*ready
	p.Storage += d.Ready * (1 - ready)
	return p
}

// Label is the verdict that follows from the truth, if it is the same wherever late and ready count.
func (d Divided) Label() window.Verdict {
	l := d.with(0, 0).Label()
	if l == d.with(0, 1).Label() && l == d.with(1, 0).Label() && l == d.with(1, 1).Label() {
		return l
	}
	return ""
}

// Apart is the error of the part that is off most, as a share of the window, with late and ready where they fit best;
// and the truth with them.
func (d Divided) Apart(found scenario.Parts) (best scenario.Parts, least float64) {
	least = math.Inf(1)
	const steps = 50
	for i := range (steps + 1) * (steps + 1) {
		truth := d.with(float64(i%(steps+1))/steps, float64(i/(steps+1))/steps)
		a, b := truth.Total(), found.Total()
		if a <= 0 || b <= 0 {
			return truth, 1
		}
		off := max(
			math.Abs(truth.Busy/a-found.Busy/b), math.Abs(truth.Storage/a-found.Storage/b),
			math.Abs(truth.CPU/a-found.CPU/b), math.Abs(truth.Other/a-found.Other/b),
			math.Abs(truth.Network/a-found.Network/b),
		)
		if off < least {
			best, least = truth, off
		}
	}
	return best, least
}
