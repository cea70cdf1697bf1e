//go:build linux

package main

import (
	"math"
	"sort"
	"strings"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/scenarios/scenario"
)

// depth limits how far a wait is followed from thread to thread.
const depth = 8

// walker divides the time in which an accelerator idled.
type walker struct {
	threads map[string][]span
	cost    map[kind]float64 // what a byte costs from memory, in ns
	parts   scenario.Parts   // in ns until parts are taken
	late    float64          // ns
}

// truth returns the parts of a window in seconds, summed over its accelerators; drivers are the threads that drive
// them, "main" alone without one. At each moment when the accelerator idles, the thread that drives it
//
//   - reads or writes: storage, except for what the same call costs from memory, which is CPU;
//   - waits for another thread: whatever that one does, and so on;
//   - waits for something else: other;
//   - does none of these: CPU. It may be ready and have no core.
//
// late is the time in which it still waits for the accelerator, which has ended: its timer is late, or it has no core.
// It is in none of the parts. It may count as CPU or as other.
//
// cost is nil for a window that read nothing from storage: then all reading is CPU.
func truth(l *logged, drivers []string, gpus bool, from, to int64, cost map[kind]float64) (
	parts scenario.Parts, late float64,
) {
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
				w.parts.Busy += float64(end - start)
				at = end
			}
		}
		w.idle(driver, at, to, 0)
	}
	const ns = 1e9
	p := w.parts
	return scenario.Parts{Busy: p.Busy / ns, Storage: p.Storage / ns, CPU: p.CPU / ns, Other: p.Other / ns}, w.late / ns
}

// idle divides the time from a to b by what a thread did.
func (w *walker) idle(thread string, a, b int64, deep int) {
	if a >= b {
		return
	}
	if deep > depth {
		w.parts.Other += float64(b - a)
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
		w.parts.CPU += float64(start - a)
		w.within(s, start, end, deep)
		a = end
	}
	w.parts.CPU += float64(max(b-a, 0))
}

// within adds the part of a span from start to end.
func (w *walker) within(s span, start, end int64, deep int) {
	switch s.kind {
	case waiting:
		w.idle(s.target, start, end, deep+1)
	case other:
		w.parts.Other += float64(end - start)
	case reading, writing:
		if w.cost == nil {
			w.parts.CPU += float64(end - start)
			return
		}
		// What the call costs from memory is taken from its end.
		cut := max(s.end-int64(w.cost[s.kind]*float64(s.bytes)), s.start)
		w.parts.Storage += float64(max(min(end, cut)-start, 0))
		w.parts.CPU += float64(max(end-max(start, cut), 0))
	default: // the accelerator
		w.late += float64(end - start)
	}
}

// costs returns what a byte cost to read and write in the windows from memory, in ns.
func costs(l *logged, warm []logWindow) map[kind]float64 {
	time, bytes := map[kind]float64{}, map[kind]float64{}
	for _, spans := range l.threads {
		for _, s := range spans {
			if s.kind != reading && s.kind != writing {
				continue
			}
			for _, w := range warm {
				if s.start >= w.start && s.end <= w.end {
					time[s.kind] += float64(s.end - s.start)
					bytes[s.kind] += float64(s.bytes)
				}
			}
		}
	}
	cost := map[kind]float64{}
	for k, b := range bytes {
		if b > 0 {
			cost[k] = time[k] / b
		}
	}
	return cost
}

// drivers returns the threads that drive the accelerators: "rank0", "rank1" and so on, or else "main".
func drivers(l *logged) (names []string) {
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

// withLate adds the late time to the truth, so that share of it is other and the rest is CPU.
func withLate(p scenario.Parts, late, share float64) scenario.Parts {
	p.Other += late * share
	p.CPU += late * (1 - share)
	return p
}

// label is the verdict that follows from the truth, wherever the late time counts.
func label(p scenario.Parts, late float64) window.Verdict {
	if a, b := withLate(p, late, 0).Label(), withLate(p, late, 1).Label(); a == b {
		return a
	}
	return ""
}

// apart is the error of the part that is off most, as a share of the window, with the late time where it fits best; and
// the truth with it.
func apart(p scenario.Parts, late float64, found scenario.Parts) (scenario.Parts, float64) {
	best, least := p, math.Inf(1)
	const steps = 100
	for i := range steps + 1 {
		truth := withLate(p, late, float64(i)/steps)
		a, b := truth.Total(), found.Total()
		if a <= 0 || b <= 0 {
			return truth, 1
		}
		off := max(
			math.Abs(truth.Busy/a-found.Busy/b), math.Abs(truth.Storage/a-found.Storage/b),
			math.Abs(truth.CPU/a-found.CPU/b), math.Abs(truth.Other/a-found.Other/b),
		)
		if off < least {
			best, least = truth, off
		}
	}
	return best, least
}
