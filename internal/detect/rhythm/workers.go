package rhythm

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

const (
	// Workers of a data loader are forked one after another: a fork of a large process takes up to a second.
	burstGap    = 1500 * time.Millisecond
	burstLength = 20 * time.Second
	maxOpen     = 32   // generations that live
	maxWorkers  = 1024 // of one generation
	maxKnown    = 4096 // processes
)

// workers follows the generations of processes of a job: those that were started together.
type workers struct {
	known []life // by start
	open  []*generation
}

// life is a living process.
type life struct {
	pid     int
	started time.Duration
	of      *generation
}

// generation is a span with its living members.
type generation struct {
	span
	lastBirth time.Duration
	alive     int
	firstEnd  time.Duration
}

func byStart(a, b detect.Process) int {
	return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.PID, b.PID))
}

// look takes the living processes and returns the generations that ended.
func (w *workers) look(f *look, first bool) (ended []span) {
	if !slices.IsSortedFunc(f.Processes, byStart) {
		slices.SortFunc(f.Processes, byStart)
	}
	if w.same(f.Processes) && len(f.stores.pids) == 0 {
		return nil
	}
	next := make([]life, 0, min(len(f.Processes), maxKnown))
	old := w.known
	for i := range f.Processes[:min(len(f.Processes), maxKnown)] {
		p := &f.Processes[i]
		for len(old) > 0 && less(old[0], p) {
			old[0].of.lose(f)
			old = old[1:]
		}
		l := life{pid: p.PID, started: p.Started}
		if len(old) > 0 && old[0].pid == p.PID && old[0].started == p.Started {
			l.of, old = old[0].of, old[1:]
		} else {
			l.of = w.born(p, f, first)
		}
		if l.of != nil {
			l.of.selfDrives = l.of.selfDrives || p.Drives
			l.of.stores = l.of.stores || slices.Contains(f.stores.pids, p.PID)
		}
		next = append(next, l)
	}
	for _, l := range old {
		l.of.lose(f)
	}
	w.known = next
	w.open = slices.DeleteFunc(w.open, func(g *generation) bool {
		if g.alive > 0 {
			return false
		}
		if g.end == 0 { // a generation that was given up
			return true
		}
		g.close(g.end, f.At-f.Last, f)
		g.stores = g.stores || g.saves()
		ended = append(ended, g.span)
		return true
	})
	slices.SortFunc(ended, func(a, b span) int { return cmp.Compare(a.begin, b.begin) })
	return merge(ended)
}

// saves reports whether processes only stored something: a file on a server does not show that it grows.
func (g *generation) saves() bool {
	wrote, ok1 := g.amount(detect.WriteBytes)
	read, ok2 := g.amount(detect.ReadChars)
	busy, ok3 := g.amount(detect.GPUBusy)
	return ok1 && ok2 && wrote >= manyStored && read < minRead && (!ok3 || busy < g.duration().Seconds()/2)
}

// merge joins generations that ended in one look, if they began soon after each other: a slow machine takes seconds for
// a fork.
func merge(ended []span) (merged []span) {
	for i := range ended {
		s := &ended[i]
		if n := len(merged); n > 0 && s.ending == 0 && merged[n-1].ending == 0 {
			before := &merged[n-1]
			if s.begin-before.begin <= max(burstGap, min(burstLength, before.duration()/4)) {
				before.count += s.count
				before.spread = s.begin + s.spread - before.begin
				before.selfDrives = before.selfDrives || s.selfDrives
				before.stores = before.stores || s.stores
				continue
			}
		}
		merged = append(merged, *s)
	}
	return merged
}

func less(l life, p *detect.Process) bool {
	return l.started < p.Started || l.started == p.Started && l.pid < p.PID
}

// same reports whether the living processes are those of the look before, as at nearly every look.
func (w *workers) same(now []detect.Process) bool {
	return len(w.known) == len(now) && slices.EqualFunc(w.known, now, func(l life, p detect.Process) bool {
		return l.pid == p.PID && l.started == p.Started
	})
}

// newest returns when the generation that began last did; 0 if none goes on.
func (w *workers) newest() time.Duration {
	if n := len(w.open); n > 0 {
		return w.open[n-1].begin
	}
	return 0
}

// born adds a process to the generation that is being started, or begins one.
func (w *workers) born(p *detect.Process, f *look, first bool) *generation {
	if n := len(w.open); n > 0 {
		g := w.open[n-1]
		// One that has lost a member already is complete.
		if p.Started-g.lastBirth <= burstGap && p.Started-g.begin <= burstLength && g.firstEnd == 0 && g.count < maxWorkers {
			g.count++
			g.alive++
			g.lastBirth = p.Started
			g.spread = g.lastBirth - g.begin
			return g
		}
	}
	if len(w.open) == maxOpen {
		w.open = slices.Delete(w.open, 1, 2) // the first is the program itself
	}
	g := &generation{lastBirth: p.Started, alive: 1}
	g.begin, g.beginOpen, g.count = p.Started, startTick, 1
	g.whole, g.looks = !first, f.looksUntil(p.Started)
	g.from = f.levelsAtBirth(p.Started)
	g.from[touched] = math.NaN()
	g.whole = g.whole && g.from.known()
	g.base = others(f, func(o *detect.Process) bool { return o.Started >= p.Started })
	w.open = append(w.open, g)
	return g
}

// startTick is the unit in which the kernel reports when a process started.
const startTick = 10 * time.Millisecond

// lose notes that a member is gone.
func (g *generation) lose(f *look) {
	if g == nil {
		return
	}
	middle := f.Last + (f.At-f.Last)/2
	if g.firstEnd == 0 {
		g.firstEnd = middle
	}
	g.alive--
	if g.alive == 0 {
		g.end = middle
		g.ending = middle - g.firstEnd
	}
}
