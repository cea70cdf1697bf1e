package monitor

import (
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// mostRecordedJobs bounds the jobs that are taken over from a recording: as many as are followed on a machine.
const mostRecordedJobs = 64

// Feed takes over one reading of a recording. The monitor's present moment is from then on that of the newest reading
// fed, so a whole recording goes through as fast as it can be read; Now, Begin and End work in between, best after the
// last source of a round, when all readings lie close together. Feed is for a monitor whose Config says Recorded, and
// is not to be called twice at once: readings have an order.
func (m *Monitor) Feed(s *sample.Sample) {
	m.mu.Lock()
	m.adopt(s.Jobs)
	m.mu.Unlock()
	m.take("recording", s, nil)
	m.tick()
}

// adopt makes a recorded reading's jobs known, as Follow does on a machine. m.mu is held.
func (m *Monitor) adopt(jobs []sample.Job) {
	for i := range jobs {
		recorded := &jobs[i]
		j := m.jobs[recorded.ID]
		if j == nil {
			if len(m.jobs) == mostRecordedJobs {
				continue
			}
			j = &job{id: recorded.ID}
			m.jobs[j.id] = j
			m.stale = true
		}
		if j.scope != recorded.Scope || j.own != recorded.OwnScope {
			j.scope, j.own = recorded.Scope, recorded.OwnScope
			m.stale = true
		}
	}
}

// recorded is the moment of the newest reading of a recording, with the newest of every source as its edge.
func (m *Monitor) recorded() Moment {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := Moment{At: m.newest, edge: &history.Edge{}}
	latest := &m.latest
	for _, s := range []*sample.Sample{&latest.Pressures, &latest.GPUs, &latest.Jobs, &latest.Cores, &latest.Disks} {
		m.history.Observe(now.edge, s)
	}
	m.split(now)
	return now
}

// stamp is the present moment, on a recording's clock where one is replayed. m.mu is held.
func (m *Monitor) stamp() sample.Stamp {
	if m.config.Recorded {
		return m.newest
	}
	return sample.Now()
}
