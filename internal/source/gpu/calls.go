package gpu

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	// patience is how long a round waits for one call. A call that takes longer is looked after in later rounds.
	patience = 100 * time.Millisecond
	// maxLook bounds what one look at a call adds to its waiting time: while this program was stopped or got no CPU, the
	// driver may have responded.
	maxLook = 2 * patience
	// maxCalls bounds the calls that are under way: one for each GPU and one for the whole driver, on any machine so far.
	maxCalls = 64
)

// call is a call of the driver, or several about one GPU, on a goroutine of its own: a thread inside the driver cannot
// be stopped. Its fields belong to the run's goroutine, and panicked before returned is closed to the call's.
type call struct {
	returned chan struct{}
	panicked any
	left     atomic.Bool   // the round no longer waits for it
	over     bool          // it has returned, and apply was called
	hung     bool          // it took longer than limit
	limit    time.Duration // of a call that works
	looked   time.Duration // Stamp.Mono
	waited   time.Duration // while this program ran
	apply    func(late bool)
	onHang   func()
}

// isUnderWay reports whether a call has not returned. c may be nil.
func (c *call) isUnderWay() bool { return c != nil && !c.over }

// begin makes a call, and waits for it for patience at most. Once it has returned, apply is called, and before that
// onHang, if it takes longer than limit: late is set then, and what the call returned is old. It returns nil if too
// many calls do not return.
func (r *run) begin(limit time.Duration, job func(), apply func(late bool), onHang func()) *call {
	if len(r.calls) >= maxCalls {
		return nil
	}
	c := &call{returned: make(chan struct{}), limit: limit, looked: sample.Now().Mono, apply: apply, onHang: onHang}
	r.calls = append(r.calls, c)
	go c.run(job, r.returned)
	r.await(c, patience)
	return c
}

// run runs the job. It wakes the source if that has stopped waiting.
func (c *call) run(job func(), wake chan struct{}) {
	c.panicked = panicOf(job)
	close(c.returned)
	if !c.left.Load() {
		return
	}
	select {
	case wake <- struct{}{}:
	default:
	}
}

// panicOf runs job and returns what it panicked with, or nil.
func panicOf(job func()) (panicked any) {
	defer func() { panicked = recover() }()
	job()
	return nil
}

// await waits for a call.
func (r *run) await(c *call, longest time.Duration) {
	timeout := time.NewTimer(longest)
	defer timeout.Stop()
	select {
	case <-c.returned:
	case <-timeout.C:
		c.left.Store(true)
	}
	r.look(c)
}

// look takes over what a call returned, or how long it has been waited for.
func (r *run) look(c *call) {
	select {
	case <-c.returned:
		c.over = true
		r.calls = slices.DeleteFunc(r.calls, func(other *call) bool { return other == c })
		if c.panicked != nil { // on the run's goroutine, which can be started again
			panic(c.panicked)
		}
		c.apply(c.hung)
		return
	default:
	}
	now := sample.Now().Mono
	c.waited += min(now-c.looked, maxLook)
	c.looked = now
	if !c.hung && c.waited >= c.limit {
		c.hung = true
		c.onHang()
	}
}

// collect looks after the calls that are under way.
func (r *run) collect() {
	for _, c := range slices.Clone(r.calls) {
		r.look(c)
	}
}

// callDriver makes a call that is about no GPU alone. There is one at a time: it returns false while another has not
// returned.
func (r *run) callDriver(what string, limit time.Duration, job func(), apply func()) bool {
	if r.driverCall.isUnderWay() {
		return false
	}
	r.driverCall = r.begin(limit, job, func(bool) { apply() }, func() { r.reportSilence(what, limit) })
	return r.driverCall != nil
}
