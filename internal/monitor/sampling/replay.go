package sampling

import (
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	// maxRecordedJobs bounds the jobs of a recording: as many as can be followed on a machine.
	maxRecordedJobs = 64
	// maxEdges bounds the edges that a recording may still refer to. The ends of a window that refers to an older edge
	// are interpolated.
	maxEdges = 8192
)

// Apply takes over one entry of a recording, unless it is a mark of a window. Entries have an order: do not call Apply
// concurrently.
func (r *Readings) Apply(e *recording.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.now
	switch {
	case e.Mark != nil:
		s.applyMark(e.Mark)
	case e.Sample != nil:
		s.disks.Normalize(e.Sample) // older versions recorded the kernel's own counters
		if e.Edge != 0 {
			s.observe(s.edges.find(e.Edge).edge, e.Sample)
		} else {
			s.append(e.Source, e.Sample)
		}
	}
}

func (s *state) applyMark(mark *recording.Mark) {
	switch mark.Op {
	case recording.Tick:
		if mark.Ceilings != nil {
			s.ceilings.Know(mark.Ceilings)
		}
		s.advance()
	case recording.Edge:
		at := s.edges.find(mark.Edge)
		at.At = *mark.At
		s.accounts.resolve(*at)
	case recording.Follow:
		s.name(mark.JobName()) // of a job that is followed already
		if s.jobs.byID[mark.ID] == nil && len(s.jobs.byID) < maxRecordedJobs {
			s.follow(&job{
				Job: Job{ID: mark.ID, Pressure: mark.Scope, Own: mark.OwnScope, Scope: window.Process,
					Visible: mark.Visible, OnlyHeldGPUs: mark.OnlyHeld, OwnTime: mark.OwnTime, Name: mark.JobName()},
				since: s.newest.Mono,
			})
		}
	case recording.Leave:
		s.unfollow(mark.ID)
	}
}

// Recorded returns the moment of a recorded Begin or End mark, and the window of a Begin mark.
func (r *Readings) Recorded(mark *recording.Mark) (at Moment, w window.Window) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if mark.Window != nil {
		w = mark.Window.Window(mark.ID)
	}
	return r.now.edges.moment(mark), w
}

// edges are the newest edges of a recording, by number.
type edges struct {
	known map[uint64]*Moment
	order []uint64
}

// find returns the edge with that number, and adds it if it is new.
func (e *edges) find(number uint64) *Moment {
	if at := e.known[number]; at != nil {
		return at
	}
	if len(e.order) == maxEdges {
		delete(e.known, e.order[0])
		e.order = e.order[1:]
	}
	at := &Moment{edge: &history.Edge{}, number: number}
	e.known[number] = at
	e.order = append(e.order, number)
	return at
}

// moment returns the moment of a mark, without readings if its edge is unknown.
func (e *edges) moment(mark *recording.Mark) Moment {
	moment := Moment{At: sample.Stamp{}}
	if mark.At != nil {
		moment.At = *mark.At
	}
	switch at := e.known[mark.Edge]; {
	case at == nil:
	case at.At.Mono > moment.At.Mono:
		return at.Before(moment.At)
	default:
		moment.edge = at.edge
	}
	return moment
}
