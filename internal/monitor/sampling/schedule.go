package sampling

import (
	"runtime"
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/schedule"
	"github.com/stallspan/stallspan/internal/source/switches"
)

// newScheduler opens the scheduler's tracepoints. A machine or a user without them is nothing to complain about: the
// reports say why.
func newScheduler(c *SourceConfig) (s Scheduler, why string) {
	if !c.Schedule {
		return nil, "following the scheduler is switched off"
	}
	source, err := schedule.NewFrom(c.Tracing)
	if err == nil {
		return source, ""
	}
	if !c.Switches {
		return nil, err.Error()
	}
	if own, refused := switches.New(); refused == nil {
		return own, err.Error()
	}
	return nil, err.Error()
}

// threads follows the threads of jobs through the scheduler. The zero value follows none.
type threads struct {
	source   Scheduler
	missing  string // why source is nil; of a recording what its last window says
	guessed  bool   // of the newest reading: sample.Schedule.Guessed
	problems *Problems
	pids     map[string][]int // by job; empty for a job that cannot be followed
}

// sync gives the scheduler's source the processes that the followed jobs have now. A reading that began before a job
// was left may still have it: nothing would end following it again.
func (t *threads) sync(reading *sample.Sample, jobs map[string]*job) {
	if t.source == nil {
		return
	}
	for i := range reading.Jobs {
		id := reading.Jobs[i].ID
		if jobs[id] == nil {
			continue
		}
		known, followed := t.pids[id]
		pids, changed := t.processes(reading.Processes, id, known)
		switch {
		case !followed && len(pids) > 0:
			t.problems.Note("schedule", t.source.Follow(id, pids))
		case followed && changed:
			t.problems.Note("schedule", t.source.Sync(id, pids))
		default:
			continue
		}
		if t.pids == nil {
			t.pids = map[string][]int{}
		}
		t.pids[id] = pids
	}
}

// processes returns the processes of a job, and whether they are others than before.
func (t *threads) processes(all []sample.Process, job string, before []int) (pids []int, changed bool) {
	n := 0
	for i := range all {
		if all[i].Job == job {
			changed = changed || n >= len(before) || before[n] != all[i].PID
			n++
		}
	}
	if !changed {
		return before, false
	}
	for i := range all {
		if all[i].Job == job {
			pids = append(pids, all[i].PID)
		}
	}
	return slices.Clip(pids), true
}

func (t *threads) unfollow(job string) {
	if _, followed := t.pids[job]; followed {
		delete(t.pids, job)
		t.source.Unfollow(job)
	}
}

// arch completes a reading of this machine for the journal.
func (t *threads) arch(reading *sample.Sample) {
	if reading.Schedule != nil && t.source != nil {
		reading.Schedule.Arch = runtime.GOARCH
	}
}
