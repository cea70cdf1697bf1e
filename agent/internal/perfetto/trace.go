// Package perfetto writes a trace for Perfetto's page (ui.perfetto.dev): windows, stalls and threads as slices, devices
// as counters. It is made from the entries of a recording as they arrive, and held in memory nowhere.
package perfetto

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Bounds of a trace: about 200 MB, which Perfetto's page opens.
const (
	maxValues = 4 << 20 // of counters, about 25 bytes each
	maxStates = 2 << 20 // of threads, about 45 bytes each
)

// Trace writes one trace. It is safe for concurrent use.
type Trace struct {
	mu       sync.Mutex
	out      encoder
	begun    bool
	closed   bool
	offset   time.Duration // between wall and monotonic clock, at the newest snapshot
	steps    int           // snapshots
	last     time.Duration // the newest reading
	tracks   tracks
	counters counters
	threads  threads
}

// New begins a trace of the machine of a recording. to is written from the goroutine that calls Write, in pieces of
// some tens of bytes.
func New(to io.Writer, h recording.Header) *Trace {
	t := &Trace{out: encoder{to: to, clock: clockMonotonic, zero: int64(h.Origin)}}
	if h.Origin == 0 {
		t.out.clock = clockRealtime // as the first reading shows it; later steps of that clock are not followed
	}
	t.tracks.out = &t.out
	t.counters.init(&t.tracks)
	t.threads.init(&t.tracks)
	return t
}

// Write adds an entry. It is of monitor.Journal, and never fails: Close returns the error.
func (t *Trace) Write(e *recording.Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.out.err != nil || t.closed {
		return nil
	}
	if m := e.Mark; m != nil && m.Op == recording.Leave && t.threads.timeline != nil {
		t.threads.timeline.Leave(m.ID)
	}
	if e.Sample == nil {
		return nil
	}
	t.at(e.Sample.At)
	if e.Edge == 0 {
		t.counters.learn(e.Sample)
	}
	if e.Sample.Schedule != nil {
		t.threads.learn(e.Sample.Schedule, &t.counters)
	}
	return nil
}

// Clock steps beyond these are left out.
const (
	sameClock = time.Millisecond
	maxSteps  = 1024
)

// at follows the wall clock.
func (t *Trace) at(s sample.Stamp) {
	t.last = max(t.last, s.Mono)
	offset := time.Duration(s.Wall.UnixNano()) - s.Mono
	if !t.begun {
		if t.out.clock == clockRealtime {
			t.out.zero = int64(offset)
		}
		t.begun = true
		t.out.begin()
		t.tracks.begin()
	} else if t.out.clock == clockRealtime || (offset-t.offset).Abs() < sameClock || t.steps >= maxSteps {
		return
	}
	t.offset = offset
	t.steps++
	t.out.clocks(s.Mono, s.Wall)
}

// Close adds the windows and the rest, and returns what was left out, one sentence each. whole is the window over
// everything; nil without one. It does not close the file.
func (t *Trace) Close(whole *window.Report, windows []*window.Report) (left []string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if !t.begun {
		if len(windows) == 0 {
			return nil, errors.New("there was no reading")
		}
		t.at(windows[0].Start)
	}
	t.threads.end()
	w := windowLanes{tracks: &t.tracks}
	w.write(whole, windows)
	left = append(t.threads.leftOut(t.wall), t.counters.leftOut(t.wall)...)
	if w.dropped > 0 {
		left = append(left, sentence(w.dropped, "window", "overlaps too many others and is not drawn",
			"overlap too many others and are not drawn"))
	}
	for _, text := range left {
		t.out.mark(t.tracks.notes(), t.last, text)
	}
	return left, t.out.err
}

// wall is what the wall clock showed at a moment, by its newest offset.
func (t *Trace) wall(at time.Duration) time.Time { return time.Unix(0, int64(t.offset+at)).UTC() }

// budget bounds how many events a part of a trace has, without an end before the trace's. Each time that half of what
// is left is used, detail becomes coarser.
type budget struct {
	left   int
	next   int           // coarser when so much is left
	detail time.Duration // what is shorter is drawn together, or left out; 0 for everything
	first  time.Duration // the first detail above 0
	since  time.Duration // when detail was raised for the first time
}

// coarser is the factor between two steps.
const coarser = 4

func newBudget(events int, first time.Duration) budget {
	return budget{left: events, next: events / 2, first: first}
}

// spend takes events. It reports false if not enough are left.
func (b *budget) spend(events int, at time.Duration) bool {
	if b.left < events {
		return false
	}
	if b.left -= events; b.left > b.next {
		return true
	}
	if b.next = b.left / 2; b.detail == 0 {
		b.detail, b.since = b.first, at
	} else {
		b.detail *= coarser
	}
	return true
}
