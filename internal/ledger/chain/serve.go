package chain

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// A thread that serves storage takes the CPU of the job's threads for a moment when it has a request, such as a worker
// of the kernel for a loop device, or the server of a FUSE mount. Without storage it would not.
// displaced notes that a thread left its CPU. If no followed thread takes it while the job wants data, what does may
// serve storage.
func (t *Timeline) displaced(th *thread, e *sample.ThreadEvent) {
	j, p := th.job, &th.pause
	if p.kind == storage {
		j.waiting++
	}
	if p.kind == storage || e.Fetched > 0 {
		j.requested = e.At
	}
	wanted := j.waiting > 0 || j.requested > 0 && e.At-j.requested < inFlight
	p.serves = p.kind == ready && p.call != sample.YieldCall && wanted && t.lastIn != e.At
	t.lastOut = th
}

// replaces notes that a followed thread got a CPU. One that left it at the same moment made room for it; nil for none.
func (t *Timeline) replaces(at time.Duration) (left *thread) {
	t.lastIn = at
	if th := t.lastOut; th != nil && th.state == stateOff && th.since == at {
		th.pause.serves = false
		return th
	}
	return nil
}

// leave notes that a thread's pause is over, or that its state is lost.
func (th *thread) leave(at time.Duration) {
	if th.state == stateOff && th.pause.kind == storage {
		th.job.waiting--
		th.job.requested = at
	}
}
