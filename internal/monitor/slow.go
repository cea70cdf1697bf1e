package monitor

import (
	"cmp"
	"time"

	"github.com/stallspan/stallspan/internal/baseline"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/window"
)

// limitOf returns the configured limit of windows of a kind, or 0 for none.
func limitOf(s config.Slow, k window.Kind) time.Duration {
	switch k {
	case window.ModelLoad:
		return s.Load
	case window.Epoch:
		return s.Epoch
	}
	return 0
}

// SaveBaselines waits until what windows took so far is in the file of baselines, for five seconds at most. What could
// not be written is one of Problems then.
func (m *Monitor) SaveBaselines() { m.book.Save() }

// openBaselines begins to compare windows with earlier ones. A recording has its own
// limits: its reports are to be those that it had.
func (m *Monitor) openBaselines() {
	if m.config.Slow.HasBaseline() && !m.config.Recorded {
		m.book = baseline.Open(m.config.Slow.Baseline, func(err error) { m.problems.note("baselines", err) })
	}
}

// lookAgain looks at the path of a load that ends where nothing could be seen of it in time when it began. Only what lies
// there is known by now: not what was in memory before.
func (m *Monitor) lookAgain(id string) (seen window.Seen) {
	if m.book == nil {
		return seen
	}
	m.mu.Lock()
	w := m.track.Find(id)
	m.mu.Unlock()
	if w == nil || w.Kind != window.ModelLoad || w.Path == "" || w.Seen.Device != "" {
		return seen
	}
	seen = m.look(&window.Window{Kind: w.Kind, Path: w.Path, PID: w.PID})
	seen.Cached, seen.HasCached = 0, false
	return seen
}

// compare judges a window by how long it took, tells by which limits, and learns from one that has ended. What is learned
// is shared, so the factor that one program was given does not decide on it. again is what lookAgain saw. m.mu is held.
func (m *Monitor) compare(r *window.Report, again window.Seen, ended bool) *window.Limits {
	limits := window.Limits{Set: limitOf(m.config.Slow, r.Kind), Factor: m.config.Slow.Factor}
	key := m.keyOf(r, again, ended)
	if usual, known := m.book.Baseline(key); known {
		limits.Baseline = &usual
	}
	r.Took(limits)
	if ended && baseline.Learnable(r) {
		slow := r.SlowReason == window.SlowThreshold || limits.Baseline != nil && r.Duration() > limits.Baseline.Limit(0)
		m.book.Learn(key, r.Duration(), slow, r.Start.Wall.Add(r.Duration()))
	}
	return &limits
}

// limitsNow is what a recording is told of limits; nil where there are none.
func limitsNow(l *window.Limits) *recording.Limits {
	if l.Set == 0 && l.Baseline == nil {
		return nil
	}
	told := &recording.Limits{Set: l.Set}
	if l.Baseline != nil {
		told.Usual = (*recording.Usual)(l.Baseline)
		told.Factor = cmp.Or(l.Factor, window.SlowFactor) // which may be another one when it is replayed
	}
	return told
}

// limitsBefore is what a recording says of limits. Those made before it said so, and windows without any, have none.
func limitsBefore(told *recording.Limits) *window.Limits {
	if told == nil {
		return &window.Limits{}
	}
	return &window.Limits{Set: told.Set, Factor: told.Factor, Baseline: (*window.Baseline)(told.Usual)}
}

// keyOf is with what a window is compared: with nothing while it is not known whether a load comes from memory, and where
// a part of its time is not its own.
func (m *Monitor) keyOf(r *window.Report, again window.Seen, ended bool) baseline.Key {
	whole := ended && !r.Unfinished
	if m.book == nil || r.ApproximateBounds || r.Kind == window.ModelLoad && !whole && !r.Seen.HasCached {
		return ""
	}
	seen, most := *r, ""
	if seen.Seen.Device == "" && again.Device != "" {
		seen.Seen = again
	}
	if r.Kind == window.ModelLoad && len(r.Disks) > 0 && m.disks != nil {
		most = m.kinds.of(mostRead(r), m.latest.Disks.Disks, m.disks.KindOf)
	}
	return baseline.KeyOf(&seen, most)
}

// mostRead is the disk that was read most.
func mostRead(r *window.Report) string {
	most := 0
	for i := range r.Disks {
		if r.Disks[i].ReadBytes > r.Disks[most].ReadBytes {
			most = i
		}
	}
	return r.Disks[most].Name
}
