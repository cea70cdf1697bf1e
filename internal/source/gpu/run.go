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
	readInterval     = time.Second            // between two readings of a GPU: the driver's buffer holds several
	minRoundInterval = 50 * time.Millisecond  // between two rounds, however many are asked for
	minReadInterval  = 100 * time.Millisecond // between two readings of a GPU that nobody asked for
	maxLag           = 1300 * time.Millisecond
	readLag          = 1200 * time.Millisecond // a GPU is read before its utilisation is older than this
	maxCatchUp       = 30 * time.Second        // of rows handed over at once, after this process stood still
	gaugeInterval    = 950 * time.Millisecond  // memory, temperature, details, events
	processInterval  = 10 * time.Second        // a list of processes takes the driver milliseconds
	maxDevices       = 256                     // GPUs and MIG slices that are remembered, lost ones included

	callTimeout = time.Second      // one reading of one GPU takes microseconds to milliseconds
	openTimeout = 30 * time.Second // a driver that nobody uses initialises its GPUs first, for seconds
)

// run is one Source.Run. Only its goroutine touches it; workers touch nothing but the devices.
type run struct {
	driver   driver
	workers  workers
	interval time.Duration
	sink     sample.Sink

	open        bool
	opening     bool // the driver has not answered yet
	retry       attempts
	relist      attempts
	listing     bool
	unavailable string // why the driver could not be opened; it is told when it changes
	version     string
	listed      int // what the driver's count was
	devices     []*deviceState
	began       time.Duration // the newest round
	next        time.Duration // the next one
	processes   time.Duration // when they are read next
	events      time.Duration // when they were read
	noEvents    bool          // the call has not returned, or the driver has none
	used        time.Duration // when the driver's use was told
	dropped     uint64        // values that cannot be, so far

	rows  rows
	notes notes
}

func newRun(d driver, interval time.Duration, sink sample.Sink) *run {
	now := sample.Now()
	return &run{
		driver: d, interval: interval, sink: sink, rows: rows{at: now, interval: interval},
		retry:  newAttempts(10*time.Second, 5*time.Minute, now.Mono),
		relist: newAttempts(time.Second, time.Minute, now.Mono), processes: now.Mono,
	}
}

// attempts schedules attempts, with pauses that double after each failure.
type attempts struct {
	pauses backoff.ExponentialBackOff
	next   time.Duration
}

func newAttempts(first, max, now time.Duration) attempts {
	return attempts{backoff.ExponentialBackOff{InitialInterval: first, Multiplier: 2, MaxInterval: max}, now}
}

func (a *attempts) failed(now time.Duration) { a.next = now + a.pauses.NextBackOff() }

func (a *attempts) succeeded() { a.pauses.Reset() }

// cycle asks what is due, and everything when all is asked for, and hands over the rows that this completes.
func (r *run) poll(ctx context.Context, all bool) {
	r.workers.reap()
	r.resume()
	r.began = sample.Now().Mono
	if !r.open && !r.opening && r.began >= r.retry.next {
		r.openSession(ctx)
	}
	if r.open {
		processes := r.began >= r.processes
		if r.mayHaveChanged(ctx, processes) && !r.listing {
			r.listDevices(ctx)
		}
		r.readDevices(ctx, all, processes)
	}
	now := sample.Now()
	upTo := r.completeUntil(now.Mono)
	r.emitRows(now, upTo)
	if all {
		r.emitPartialRow(now, upTo)
	}
	r.schedule(now.Mono)
}

// resume lets the GPUs be asked again for which there was no thread.
func (r *run) resume() {
	if !r.workers.available() {
		return
	}
	for _, c := range r.devices {
		if c.noThread {
			c.noThread = false
			if c.status == sample.GPUHung {
				c.status, c.due = sample.GPUWorks, r.began
			}
		}
	}
}

// plan sets the time of the next round.
func (r *run) schedule(now time.Duration) {
	r.next = now + readInterval
	if !r.open && !r.opening && len(r.devices) == 0 {
		r.next = max(r.retry.next, now+minReadInterval)
	}
	for _, c := range r.devices {
		if c.readable() {
			r.next = min(r.next, c.due)
		}
	}
	r.next = max(r.next, r.began+minRoundInterval)
}

// tryOpen begins a session with the driver and lists its GPUs.
func (r *run) openSession(ctx context.Context) {
	var err error
	var devices []device
	var version string
	var count int
	r.opening = true
	sessionOpened := func() {
		r.opening = false
		r.sessionOpened(devices, version, count, err)
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
	}, sessionOpened) {
	case completed:
		sessionOpened()
	case timedOut:
		r.reportUnavailable(fmt.Errorf("the NVIDIA driver has not answered for %v: GPUs are read as soon as it does", openTimeout))
	case noThread:
		r.opening = false
		r.retry.failed(r.began)
	}
}

var errNoGPU = errors.New("the NVIDIA driver has no GPU: `nvidia-smi -L` lists none either, or this container is given none")

func (r *run) sessionOpened(devices []device, version string, count int, err error) {
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
		r.rows.at = sample.Now() // nothing is known of the time before
	}
	r.retry.succeeded()
	r.open, r.version, r.unavailable, r.noEvents = true, version, "", false
	r.updateDevices(devices, count, err, now)
}

// tell says why there are no GPUs, once for each reason.
func (r *run) reportUnavailable(err error) {
	if err.Error() == r.unavailable {
		return
	}
	r.unavailable = err.Error()
	if len(r.devices) > 0 {
		r.notes.add(r.unavailable, err, sample.Now().Mono)
		return
	}
	at := sample.Now()
	r.rows.at = at
	r.sink(sourceName, &sample.Sample{At: at}, err)
}

// needsList says whether the GPUs may have changed.
func (r *run) mayHaveChanged(ctx context.Context, check bool) bool {
	if slices.ContainsFunc(r.devices, func(c *deviceState) bool { return c.device == nil }) {
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

// list looks for GPUs that came, went and returned.
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
		limit = openTimeout // a GPU that was reset shows up in a new session alone, which others would not survive
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

// ended forgets a session that the driver has ended.
func (r *run) endSession(err error) {
	if !r.open {
		return
	}
	r.open = false
	for _, c := range r.devices {
		c.markLost()
		r.emitXIDs(c)
	}
	r.rows.processes, r.rows.processesRead = nil, true // none is known any more
	r.reportUnavailable(err)
	if len(r.workers.stuck) == 0 {
		r.do(context.Background(), callTimeout, r.driver.close, func() {})
	}
	r.retry.failed(r.began)
}

// do makes calls on a worker, and lets the rows of the others go on while they last.
func (r *run) do(ctx context.Context, limit time.Duration, job, onReturn func()) outcome {
	return r.workers.do(ctx, limit, minReadInterval, func() time.Duration {
		now := sample.Now()
		r.emitRows(now, now.Mono-maxLag)
		return r.interval
	}, job, onReturn)
}

func (r *run) anyReadable() bool { return slices.ContainsFunc(r.devices, (*deviceState).readable) }

// end ends what run began. Where a call does not return, the session ends when it does.
func (r *run) end() {
	r.workers.reap()
	if r.open && len(r.workers.stuck) == 0 {
		r.workers.do(context.Background(), callTimeout, callTimeout, func() time.Duration { return callTimeout }, r.driver.close, func() {})
	}
	r.workers.end(r.driver.close)
}
