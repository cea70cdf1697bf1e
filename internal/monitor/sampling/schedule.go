package sampling

import (
	"runtime"
	"slices"

	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/moments"
)

// switchedOff says why events are missing that are not wanted.
const switchedOff = "following the scheduler is switched off"

// events are the scheduler's. They are implemented by bpf.Source.
type events interface {
	Scheduler
	// Refused returns why they cannot be had; nil if they can.
	Refused() error
}

// threads follows the threads of jobs: through the scheduler's events, or else by moments. The zero value follows none.
type threads struct {
	events   events          // nil for none
	moments  *moments.Source // nil for a recording
	recorded string          // why a recording has no events, by its last window
	problems *Problems
	jobs     map[string]followed
}

// followed is a job whose threads are followed.
type followed struct {
	pids  []int
	by    Scheduler
	tried bool // by events
}

// sync gives the sources the processes that the followed jobs have now. A reading that began before a job was left may
// still have it: nothing would end following it again. It reports whether a job began to be followed.
func (t *threads) sync(reading *sample.Sample, jobs map[string]*job) (began bool) {
	if t.moments == nil {
		return false
	}
	for i := range reading.Jobs {
		id := reading.Jobs[i].ID
		if jobs[id] == nil {
			continue
		}
		known, follows := t.jobs[id]
		pids, changed := t.processes(reading.Processes, id, known.pids)
		switch {
		case len(pids) > 0 && (!follows || !known.tried && t.may()):
			if follows { // events can be had now
				t.moments.Unfollow(id)
			}
			known.tried = t.may()
			known.by = t.follow(id, pids)
			began = true
		case follows && changed:
			t.problems.Note("schedule", known.by.Sync(id, pids))
		default:
			continue
		}
		known.pids = pids
		t.jobs[id] = known
	}
	return began
}

// missing returns why there are no events; "" if there are.
func (t *threads) missing() string {
	switch {
	case t.moments == nil:
		return t.recorded
	case t.events == nil:
		return switchedOff
	}
	if why := t.events.Refused(); why != nil {
		return why.Error()
	}
	return ""
}

// may reports whether events can be had.
func (t *threads) may() bool { return t.events != nil && t.events.Refused() == nil }

// follow begins to follow a job, and returns the source that does.
func (t *threads) follow(id string, pids []int) Scheduler {
	if t.may() {
		err := t.events.Follow(id, pids)
		t.problems.Note("schedule", err)
		if err == nil {
			return t.events
		}
		t.events.Unfollow(id)
	}
	t.problems.Note("moments", t.moments.Follow(id, pids))
	return t.moments
}

// lead gives the source of moments the threads that lead the jobs that it follows.
func (t *threads) lead(targets []ledger.Target) {
	if t.moments == nil {
		return
	}
	leaders := map[string][]moments.Leader{}
	for i := range targets {
		if to := &targets[i]; to.Job != "" && to.Leader != 0 {
			leaders[to.Job] = append(leaders[to.Job], moments.Leader{TID: to.Leader, Drives: to.GPU != ""})
		}
	}
	for id, list := range leaders {
		t.moments.Lead(id, list) // of a job that the events follow it knows nothing
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
	if known, follows := t.jobs[job]; follows {
		delete(t.jobs, job)
		known.by.Unfollow(job)
	}
}

// arch completes a reading of this machine for the journal.
func (t *threads) arch(reading *sample.Sample) {
	if reading.Schedule != nil && t.events != nil {
		reading.Schedule.Arch = runtime.GOARCH
	}
	if reading.Moments != nil && t.moments != nil {
		reading.Moments.Arch = runtime.GOARCH
	}
}
