package monitor

import (
	"fmt"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	// mostRecordedJobs bounds the jobs that are taken over from a recording: as many as are followed on a machine.
	mostRecordedJobs = 64
	// mostEdges bounds the edges that a recording may still refer to. A window that refers to an older one has its ends
	// interpolated.
	mostEdges = 8192
)

// Feed takes over one entry of a recording. The monitor's present moment is from then on that of the newest reading
// fed, so a whole recording goes through as fast as it can be read; Now, Begin and End work in between, best after a
// tick, when all readings lie close together. Windows that were recorded begin and end by themselves, with the reports
// that they had. The error is window.ErrUnknown for the end of a window whose beginning was not fed; after any error the
// next entry may be fed. Feed is for a monitor whose Config says Recorded, and is not to be called twice at once: entries
// have an order.
func (m *Monitor) Feed(e *recording.Entry) error {
	if e.Mark != nil && e.Mark.Op == recording.End {
		_, err := m.end(e.Mark.ID, m.momentOf(e.Mark), e.Mark.Readers, e.Mark.Unfinished, limitsBefore(e.Mark.Limits))
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case e.Mark != nil:
		return m.apply(e.Mark)
	case e.Sample == nil:
		return nil
	}
	m.normalizer.Normalize(e.Sample) // older versions recorded the kernel's own counters
	switch {
	case e.Edge != 0:
		m.observe(m.edges.find(e.Edge).edge, e.Sample)
	default:
		m.append(e.Source, e.Sample)
	}
	return nil
}

// apply does again what a mark tells of. m.mu is held.
func (m *Monitor) apply(mark *recording.Mark) error {
	switch mark.Op {
	case recording.Tick:
		m.knowRecorded(mark.Ceilings)
		m.advance()
	case recording.Edge:
		at := m.edges.find(mark.Edge)
		at.At = *mark.At
		m.settle(*at)
	case recording.Follow:
		if m.jobs[mark.ID] == nil && len(m.jobs) < mostRecordedJobs {
			m.adopt(&job{id: mark.ID, scope: mark.Scope, own: mark.OwnScope, whose: window.Process, since: m.newest.Mono})
		}
	case recording.Leave:
		m.abandon(mark.ID)
	case recording.Begin:
		w := replayed(mark.ID, mark.Window)
		if !w.Kind.Valid() {
			return fmt.Errorf("the recorded window %s has the kind %q, which there is not", mark.ID, w.Kind)
		}
		return m.begin(&w, m.edges.moment(mark))
	case recording.Drop:
		_, _ = m.track.End(mark.ID) // ErrUnknown: it began before the recording
	}
	return nil
}

func (m *Monitor) momentOf(mark *recording.Mark) Moment {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.edges.moment(mark)
}

// edges are the newest ones of a recording, by number.
type edges struct {
	known map[uint64]*Moment
	order []uint64
}

// find gives the edge of that number, a new one where it is not known.
func (e *edges) find(number uint64) *Moment {
	if at := e.known[number]; at != nil {
		return at
	}
	if e.known == nil {
		e.known = map[uint64]*Moment{}
	}
	if len(e.order) == mostEdges {
		delete(e.known, e.order[0])
		e.order = e.order[1:]
	}
	at := &Moment{edge: &history.Edge{}, number: number}
	e.known[number] = at
	e.order = append(e.order, number)
	return at
}

// moment is where a mark lies: at an edge, or only in time.
func (e *edges) moment(mark *recording.Mark) Moment {
	moment := Moment{At: *mark.At}
	if at := e.known[mark.Edge]; at != nil {
		moment.edge = at.edge
	}
	return moment
}

// recorded is the moment of the newest reading of a recording, with the newest of every source as its edge.
func (m *Monitor) recorded() Moment {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := Moment{At: m.newest, edge: &history.Edge{}}
	latest := &m.latest
	for _, s := range []*sample.Sample{&latest.Pressures, &latest.GPUs, &latest.Jobs, &latest.Cores, &latest.Disks} {
		if s != &latest.GPUs || m.newest.Mono-s.At.Mono < m.config.Interval/2 { // it may have an axis of its own, and lag
			m.history.Observe(now.edge, s)
		}
	}
	m.peek(now)
	return now
}

// stamp is the present moment, on a recording's clock where one is replayed. m.mu is held.
func (m *Monitor) stamp() sample.Stamp {
	if m.config.Recorded {
		return m.newest
	}
	return sample.Now()
}
