package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	readInterval     = time.Second            // between two readings of a GPU; the driver's buffer holds several seconds
	minRoundInterval = 50 * time.Millisecond  // between two rounds, for any number of requests
	minReadInterval  = 100 * time.Millisecond // between two readings of a GPU without a request
	maxCatchUp       = 30 * time.Second       // of rows in one round, after this process was suspended
	gaugeInterval    = 950 * time.Millisecond // of memory, temperature, details and XID errors
	processInterval  = 10 * time.Second       // listing processes takes milliseconds
	againProcesses   = 2 * time.Second        // between two lists while a GPU's used memory jumps
	firstProcesses   = time.Second            // between two lists, doubled each time, while a GPU has no process
	maxDevices       = 256                    // GPUs and MIG devices with state, including lost ones

	callTimeout = time.Second      // reading one GPU takes microseconds to milliseconds
	openTimeout = 30 * time.Second // an unused driver takes seconds to initialize its GPUs
)

// run is one call of Source.Run. Only its goroutine accesses it; workers access the devices only.
type run struct {
	driver   driver
	workers  workers
	interval time.Duration
	sink     sample.Sink
	memory   *memoryInUse // of the Source

	open          bool
	opening       bool // the driver has not responded yet
	retry         attempts
	relist        attempts
	listing       bool
	unavailable   string // why there is no session; reported when it changes
	version       string
	listed        int // the driver's device count
	devices       []*deviceState
	began         time.Duration // start of the newest round
	next          time.Duration // start of the next round
	processes     attempts      // to list processes; one fails if a GPU has none
	processesRead time.Duration // last list of processes
	xidsRead      time.Duration // last reading of XID errors
	noXIDs        bool          // the call has not returned, or is not supported
	statsSent     time.Duration // last time that the driver's call statistics were emitted
	dropped       uint64        // garbage values so far

	grid    grid
	reports reports
}

func newRun(d driver, interval time.Duration, sink sample.Sink, memory *memoryInUse) *run {
	now := sample.Now()
	return &run{
		driver: d, interval: interval, sink: sink, memory: memory, grid: grid{at: now, interval: interval},
		retry:     newAttempts(10*time.Second, 5*time.Minute, now.Mono),
		relist:    newAttempts(time.Second, time.Minute, now.Mono),
		processes: newAttempts(firstProcesses, processInterval, now.Mono),
	}
}

// attempts schedules attempts, with pauses that double after each failure.
type attempts struct {
	pauses backoff.ExponentialBackOff
	next   time.Duration
}

func newAttempts(first, longest, now time.Duration) attempts {
	return attempts{backoff.ExponentialBackOff{InitialInterval: first, Multiplier: 2, MaxInterval: longest}, now}
}

func (a *attempts) failed(now time.Duration) { a.next = now + a.pauses.NextBackOff() }

func (a *attempts) succeeded() { a.pauses.Reset() }

// poll reads what is due, or everything if all is set, and emits the rows that this completes.
func (r *run) poll(ctx context.Context, all bool) {
	r.workers.reap()
	r.resume()
	r.began = sample.Now().Mono
	if !r.open && !r.opening && r.began >= r.retry.next {
		r.openSession(ctx)
	}
	if r.open {
		// The first window of a program should know its GPUs, and its ends request a reading.
		processes := r.began >= r.processes.next || all && r.began >= r.processesRead+firstProcesses
		if r.mayHaveChanged(ctx, processes) && !r.listing {
			r.listDevices(ctx)
		}
		r.readDevices(ctx, all, processes)
		if !processes && r.open && r.began >= r.processes.next { // memory jumped: a program has come
			r.readDevices(ctx, false, true)
		}
		if due := r.watchedMemory(); len(due) > 0 && r.open {
			r.readEach(ctx, due, func(*deviceState) request { return request{onlyMemory: true} })
		}
	}
	now := sample.Now()
	until := r.completeUntil(now.Mono)
	r.emitFirstRow(now)
	r.emitRows(now, until)
	if all {
		r.emitPartialRow(now, until)
	}
	r.schedule(now.Mono)
}

// resume retries the GPUs that were not read because no thread was left.
func (r *run) resume() {
	if !r.workers.available() {
		return
	}
	for _, g := range r.devices {
		if g.noThread {
			g.noThread = false
			if g.status == sample.GPUHung {
				g.status, g.due = sample.GPUWorks, r.began
			}
		}
	}
}

// schedule sets the time of the next round.
func (r *run) schedule(now time.Duration) {
	r.next = now + readInterval
	if !r.open && !r.opening && len(r.devices) == 0 {
		r.next = max(r.retry.next, now+minReadInterval)
	}
	for _, g := range r.devices {
		if g.readable() {
			r.next = min(r.next, g.due)
			if g.watched {
				r.next = min(r.next, r.began+memoryInterval)
			}
		}
		if g.memoryJumped() {
			r.next = min(r.next, r.processes.next)
		}
	}
	r.next = max(r.next, r.began+minRoundInterval)
}

// openSession opens a session with the driver and lists its GPUs.
func (r *run) openSession(ctx context.Context) {
	var err error
	var devices []device
	var version string
	var count int
	r.opening = true
	opened := func() {
		r.opening = false
		r.opened(devices, version, count, err)
	}
	switch r.do(ctx, openTimeout, func() {
		if err = r.driver.open(); err != nil {
			return
		}
		version, _ = r.driver.versions()
		if count, err = r.driver.count(); err == nil {
			devices, err = r.driver.devices()
		}
		if err != nil && len(devices) == 0 || count == 0 {
			r.driver.close()
		}
	}, opened) {
	case completed:
		opened()
	case timedOut:
		r.reportUnavailable(fmt.Errorf("the NVIDIA driver has not responded for %v: GPUs are read once it does", openTimeout))
	case noThread:
		r.opening = false
		r.retry.failed(r.began)
	}
}

var errNoGPU = errors.New("the NVIDIA driver has no GPU: check `nvidia-smi -L`, and the container's access to a GPU")

func (r *run) opened(devices []device, version string, count int, err error) {
	now := sample.Now().Mono
	if len(devices) == 0 {
		if err == nil {
			err = errNoGPU
		}
		r.retry.failed(now)
		r.reportUnavailable(err)
		return
	}
	if r.unavailable != "" && len(r.devices) == 0 {
		r.grid.at = sample.Now() // there is no data of the time before
	}
	r.retry.succeeded()
	r.open, r.version, r.unavailable, r.noXIDs = true, version, "", false
	r.updateDevices(devices, count, err, now)
}

// reportUnavailable reports why there are no GPUs, once for each reason.
func (r *run) reportUnavailable(err error) {
	if err.Error() == r.unavailable {
		return
	}
	r.unavailable = err.Error()
	if len(r.devices) > 0 {
		r.reports.add(r.unavailable, err, sample.Now().Mono)
		return
	}
	at := sample.Now()
	r.grid.at = at
	r.sink(sourceName, &sample.Sample{At: at}, err)
}

// mayHaveChanged reports whether the list of devices may have changed.
func (r *run) mayHaveChanged(ctx context.Context, check bool) bool {
	if slices.ContainsFunc(r.devices, func(g *deviceState) bool { return g.device == nil }) {
		return r.began >= r.relist.next
	}
	if !check {
		return false
	}
	count := r.listed
	var err error
	if r.do(ctx, callTimeout, func() { count, err = r.driver.count() }, func() {}) != completed {
		return false
	}
	if isSessionEnded(err) {
		r.endSession(err)
		return false
	}
	return err == nil && count != r.listed
}

// listDevices updates the list of devices.
func (r *run) listDevices(ctx context.Context) {
	var devices []device
	var count int
	var err, closed error
	r.listing = true
	listed := func() {
		r.listing = false
		if !r.open {
			return
		}
		if closed != nil {
			err = closed
		}
		if closed != nil || isSessionEnded(err) {
			r.endSession(err)
			return
		}
		r.updateDevices(devices, count, err, sample.Now().Mono)
	}
	limit, again := callTimeout, !r.anyReadable() && len(r.workers.stuck) == 0
	if again {
		limit = openTimeout // a GPU that was reset appears in a new session only; the other GPUs are lost, too
	}
	switch r.do(ctx, limit, func() {
		if again {
			r.driver.close()
			if closed = r.driver.open(); closed != nil {
				return
			}
		}
		if count, err = r.driver.count(); err == nil {
			devices, err = r.driver.devices()
		}
	}, listed) {
	case completed:
		listed()
	case noThread:
		r.listing = false
	case timedOut:
	}
}

// endSession ends the session after the driver has ended it.
func (r *run) endSession(err error) {
	if !r.open {
		return
	}
	r.open = false
	for _, g := range r.devices {
		g.markLost()
		r.emitXIDs(g)
	}
	r.grid.processes, r.grid.processesRead = nil, true // no process is known any more
	r.reportUnavailable(err)
	if len(r.workers.stuck) == 0 {
		r.do(context.Background(), callTimeout, r.driver.close, func() {})
	}
	r.retry.failed(r.began)
}

// do makes calls on a worker. Meanwhile it emits the rows of the other GPUs.
func (r *run) do(ctx context.Context, limit time.Duration, job, onReturn func()) outcome {
	return r.workers.do(ctx, limit, noLonger, minReadInterval, r.meanwhile, job, onReturn)
}

func noLonger() time.Duration { return 0 }

// doEach is do for a job of several calls. Each may take callTimeout: see workers.do.
func (r *run) doEach(ctx context.Context, left func() time.Duration, job, onReturn func()) outcome {
	return r.workers.do(ctx, callTimeout, left, minReadInterval, r.meanwhile, job, onReturn)
}

func (r *run) meanwhile() time.Duration {
	now := sample.Now()
	r.emitRows(now, now.Mono-r.lag())
	return r.interval
}

func (r *run) anyReadable() bool { return slices.ContainsFunc(r.devices, (*deviceState).readable) }

// end ends the run. If a call hangs, the session ends when the call returns.
func (r *run) end() {
	r.workers.reap()
	if r.open && len(r.workers.stuck) == 0 {
		none := func() {}
		tick := func() time.Duration { return callTimeout }
		r.workers.do(context.Background(), callTimeout, noLonger, callTimeout, tick, r.driver.close, none)
	}
	r.workers.end(r.driver.close)
}
