package chain

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// steal learns how much the hypervisor steals from threads that fetch no data.
type steal struct {
	stolen, ran time.Duration // the evidence fades
}

// split divides what was stolen from a stretch of running: what is above the usual share was stolen for the data that
// the stretch fetched. The hypervisor serves a fast disk while the virtual CPU stands still.
func (s *steal) split(stolen, length time.Duration, fetched bool) (usual, forData time.Duration) {
	if !fetched {
		s.stolen, s.ran = s.stolen+stolen, s.ran+length
		if s.ran > stealMemory {
			kept := float64(stealMemory) / float64(s.ran)
			s.stolen, s.ran = time.Duration(float64(s.stolen)*kept), stealMemory
		}
		return stolen, 0
	}
	if s.ran > 0 {
		usual = time.Duration(float64(length) * float64(s.stolen) / float64(s.ran))
	}
	usual = min(usual, stolen)
	return usual, stolen - usual
}

// ran closes a stretch on a CPU that ends at a moment. What was stolen from it, or from the time of the sum that e is,
// comes last.
func (th *thread) ran(t *Timeline, at time.Duration, e *sample.ThreadEvent) segment {
	length := at - th.since
	stolen := max(0, min(e.Stolen, length))
	usual, forData := t.steal.split(stolen, length, e.Fetching > 0 || e.Fetched > 0)
	on := segment{kind: running, fetch: th.learnFetching(length-stolen, e.Fetching-forData)}
	on.spins = e.State == sample.StateReady && sample.CallOf(t.arch, e.Syscall) == sample.YieldCall
	th.close(t, at-stolen, on)
	th.close(t, at-stolen+usual, segment{kind: taken})
	th.close(t, at, segment{kind: storage})
	return on
}
