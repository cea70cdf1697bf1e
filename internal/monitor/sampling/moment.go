package sampling

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
)

// Moment is a reading of every source for the edge of a window. One Moment may end a window and begin the next, so that
// no time falls between the two.
type Moment struct {
	At     sample.Stamp
	edge   *history.Edge
	number uint64        // in the journal
	next   *history.Next // of a past moment: the reading that followed
}

// Before returns a moment of the past that this one follows. It has no readings of its own: those around it are
// interpolated.
func (at Moment) Before(past sample.Stamp) Moment {
	return Moment{At: past, number: at.number, next: at.Next()}
}

func (at Moment) point() history.Point { return history.Point{At: at.At.Mono, Edge: at.edge} }

// Next returns the moment as a reading after the end of a window; nil for the zero Moment.
func (at Moment) Next() *history.Next {
	if at.edge == nil {
		return nil
	}
	return &history.Next{At: at.At.Mono, Edge: at.edge}
}

// Past returns a moment that is over, without a reading of its own: the readings around it bracket it.
func (r *Readings) Past(mono time.Duration) Moment { return Moment{At: r.StampOf(mono)} }

// Now takes a reading for the windows that begin or end with it. The history does not keep it. Now never reads a GPU's
// driver: those values arrive later, and are added then.
func (r *Readings) Now() Moment {
	if r.recorded() {
		return r.newestReadings()
	}
	now := r.read()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.journal.mark(recording.Mark{Op: recording.Edge, Edge: now.number, At: &now.At})
	r.now.accounts.resolve(now)
	return now
}

// Glimpse is Now for reports of windows that stay open. It extrapolates what a GPU's driver has not yet returned.
func (r *Readings) Glimpse() Moment {
	if r.recorded() {
		return r.newestReadings()
	}
	now := r.read()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.accounts.ledger.Estimate(now.point())
	return now
}

func (r *Readings) read() Moment {
	r.mu.Lock()
	r.now.journal.edges++
	now := Moment{edge: r.now.history.NewEdge(), number: r.now.journal.edges}
	r.mu.Unlock()
	now.At = r.config.Sources.Read(func(source string, s *sample.Sample, err error) {
		r.problems.Note(source, err)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.now.schedule.arch(s)
		r.now.journal.reading(source, now.number, s)
		r.now.observe(now.edge, s)
	})
	return now
}

// newestReadings returns the moment of the newest reading of a recording, with the newest of every source as its edge.
func (r *Readings) newestReadings() Moment {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.now
	now := Moment{At: s.newest, edge: &history.Edge{}}
	latest := &s.latest
	for _, reading := range []*sample.Sample{
		&latest.Pressures, &latest.GPUs, &latest.Jobs, &latest.Cores, &latest.Disks, &latest.Latencies, &latest.Mounts,
	} {
		// GPUs may have an axis of their own, and lag.
		if reading != &latest.GPUs || s.newest.Mono-reading.At.Mono < r.config.Interval/2 {
			s.history.Observe(now.edge, reading)
		}
	}
	s.accounts.ledger.Estimate(now.point())
	return now
}

// CatchUp requests the newest samples of the GPUs if the moment lacks them. It waits for 50 ms at most.
func (r *Readings) CatchUp(at Moment) {
	if r.LacksGPU(at) {
		r.config.Sources.CatchUp()
	}
}

// LacksGPU reports whether a GPU's driver may still return samples of a moment. It is false for a recording.
func (r *Readings) LacksGPU(at Moment) bool { return !r.recorded() && r.history.Lags(at.point()) }

// RequestGPUs requests the newest samples of the GPUs, and returns at once.
func (r *Readings) RequestGPUs() { r.config.Sources.requestGPUs() }

// accounts are the ledgers, and the edges that wait for them.
type accounts struct {
	history  *history.History
	problems *Problems
	ledger   *ledger.Estimator
	waiting  []Moment // edges for which a GPU has no sample yet, in the order of time
}

// maxWaiting bounds the edges that wait for a GPU: those of windows that began or ended in the last seconds. A
// recording could have any number, and each costs time at every tick.
const maxWaiting = 2048

// advance accounts for what is new, and resolves the waiting edges that it reaches.
func (a *accounts) advance() {
	var points []history.Point
	for _, at := range a.waiting {
		points = append(points, at.point())
	}
	reached, err := a.ledger.Advance(points)
	a.problems.Note("history", err)
	a.waiting = slices.Delete(a.waiting, 0, reached)
}

// resolve adds the ledgers' totals to a moment: at once, or as soon as every GPU has a sample from after the moment. If
// too many wait, the oldest one takes an estimate.
func (a *accounts) resolve(at Moment) {
	if !a.history.Lags(at.point()) {
		reached, err := a.ledger.Advance([]history.Point{at.point()}) // it may wait for more, without an edge
		a.problems.Note("history", err)
		if reached == 0 {
			a.ledger.Estimate(at.point())
		}
		return
	}
	if len(a.waiting) == maxWaiting {
		a.ledger.Estimate(a.waiting[0].point())
		a.waiting = slices.Delete(a.waiting, 0, 1)
	}
	i := len(a.waiting)
	for i > 0 && a.waiting[i-1].At.Mono > at.At.Mono {
		i--
	}
	a.waiting = slices.Insert(a.waiting, i, at)
}

// extrapolated returns an edge that is needed now. For an edge that waits for a GPU it returns a copy in which the GPU
// goes on as before. The original goes on waiting, for a window that may begin at it.
func (a *accounts) extrapolated(edge *history.Edge) *history.Edge {
	i := slices.IndexFunc(a.waiting, func(at Moment) bool { return at.edge == edge })
	if i < 0 {
		return edge
	}
	at := a.waiting[i]
	at.edge = edge.Clone()
	a.ledger.Estimate(at.point())
	return at.edge
}
