package gpu

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	readInterval     = time.Second            // between two readings of a GPU; the driver's buffer holds several seconds
	minRoundInterval = 50 * time.Millisecond  // between two rounds, for any number of requests
	minReadInterval  = 100 * time.Millisecond // between two readings of a GPU without a request
	gaugeInterval    = 950 * time.Millisecond // of memory, temperature, details and XID errors
	processInterval  = 10 * time.Second       // listing processes takes milliseconds
	againProcesses   = 2 * time.Second        // between two lists while a GPU's used memory jumps
	firstProcesses   = time.Second            // between two lists, doubled each time, while a GPU has no process
	maxDevices       = 256                    // GPUs and MIG devices with state, including lost ones
	maxPause         = 5 * time.Minute        // between two attempts to open a session

	callTimeout = time.Second      // reading one GPU takes microseconds to milliseconds
	openTimeout = 30 * time.Second // an unused driver takes seconds to initialize its GPUs
)

// run is what one call of Source.Run knows of a driver. Only its goroutine accesses it; calls access the driver and
// their device only.
type run struct {
	*grid
	driver  driver
	maker   *maker
	machine *machine // nil in tests, and where a driver is believed

	calls      []*call // under way
	driverCall *call   // the newest that is about no GPU alone
	listing    *call   // of all processes

	isReleased func(now time.Duration) bool // see Source.Release
	rest       rest
	closing    bool // the session is to end once all calls have returned

	open          bool
	session       int // number of sessions begun
	retry         attempts
	relist        attempts
	why           error // there is no session; reported when it changes
	version       string
	library       string // its version
	slots         []slot // the newest list of GPUs, by index
	devices       []*deviceState
	began         time.Duration // start of the newest round
	processes     attempts      // to list processes and devices; one fails if a GPU has no process
	processesRead time.Duration // last list of processes
	xidsRead      time.Duration // last reading of XID errors
	noXIDs        bool          // the call is not supported
	statsSent     time.Duration // last time that the driver's call statistics were emitted

	garbage map[string]int // garbage values that were not reported yet
}

// newRun adds a driver's GPUs to a grid.
func newRun(d driver, w *grid, m *machine) *run {
	now := sample.Now().Mono
	r := &run{
		grid: w, driver: d, maker: d.maker(), isReleased: func(time.Duration) bool { return false },
		retry:     newAttempts(10*time.Second, maxPause, now),
		relist:    newAttempts(time.Second, time.Minute, now),
		processes: newAttempts(firstProcesses, processInterval, now),
	}
	if r.maker == nvidia && m != nil {
		r.machine, r.rest = m, rest{mayRest: m.mayRest, devices: filepath.Join(m.root, "dev/nvidia*")}
	}
	w.runs = append(w.runs, r)
	return r
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

// poll reads what is due, or everything if all is set.
func (r *run) poll(ctx context.Context, all bool) {
	r.began = sample.Now().Mono
	r.collect()
	if held := r.letGo(); !held && !r.open && r.began >= r.retry.next {
		r.openSession()
	}
	if r.open {
		// The first window of a program should know its GPUs, and its ends request a reading.
		processes := r.began >= r.processes.next || all && r.began >= r.processesRead+firstProcesses
		if r.mayHaveChanged(processes) {
			r.listDevices()
		}
		r.readDevices(ctx, all, processes)
		if !processes && r.open && r.began >= r.processes.next { // memory jumped: a program has come
			r.readDevices(ctx, false, true)
		}
		r.readEach(ctx, r.watchedMemory(), func(*deviceState) request { return request{onlyMemory: true} })
	}
}

// schedule returns the time of the next round.
func (r *run) schedule(now time.Duration) time.Duration {
	next := now + readInterval
	if !r.open && len(r.devices) == 0 && r.retry.next > next && !r.driverCall.isUnderWay() {
		next = r.retry.next
	}
	if slices.ContainsFunc(r.calls, func(c *call) bool { return !c.hung }) {
		next = min(next, now+patience)
	}
	for _, g := range r.devices {
		if g.readable() && !g.call.isUnderWay() {
			next = min(next, g.due)
			if g.watched {
				next = min(next, r.began+memoryInterval)
			}
		}
		if g.memoryJumped() {
			next = min(next, r.processes.next)
		}
	}
	return max(next, r.began+minRoundInterval)
}

// openSession opens a session with the driver, and lists its GPUs.
func (r *run) openSession() {
	var version, library string
	var count int
	var err error
	r.callDriver("nvmlInit", openTimeout, func() {
		if err = r.driver.open(); err != nil {
			return
		}
		version, library = r.driver.versions()
		if count, err = r.driver.count(); err != nil || count == 0 {
			r.driver.close()
		}
	}, func() {
		r.version, r.library = version, library
		if err == nil && count == 0 {
			err = errNoGPU
		}
		if err != nil {
			r.retry.failed(sample.Now().Mono)
			r.reportUnavailable(err)
			return
		}
		r.open, r.noXIDs = true, false
		r.session++
		r.listSlots(count)
	})
}

var errNoGPU = errors.New("the NVIDIA driver has no GPU: check `nvidia-smi -L`, and the container's access to a GPU")

// reportSilence reports that the driver has not responded to a call about all GPUs.
func (r *run) reportSilence(call string, limit time.Duration) {
	if !r.open {
		r.reportUnavailable(fmt.Errorf("%s has not responded for %v: GPUs are read once it does", r.maker.driver, limit))
		return
	}
	r.report(fmt.Errorf("%s has not responded to %s for %v: until it does, each GPU is read that responds, and no XID "+
		"error is counted; look for %s in the kernel log", r.maker.driver, call, limit, r.maker.trace))
}

// report reports a problem once a minute; at once if there is no GPU whose row it could come with.
func (r *run) report(err error) {
	if !r.hasDevices() {
		r.reportUnavailable(err)
		return
	}
	r.reports.Add(err.Error(), err, r.began)
}

// reportUnavailable reports why there are no GPUs, once for each reason.
func (r *run) reportUnavailable(err error) {
	known := r.why != nil && r.why.Error() == err.Error() || errors.Is(err, errNoCard)
	r.why = err
	switch {
	case known:
	case r.machine.lacks(err):
		r.none = true
	case r.hasDevices():
		r.report(err)
	default:
		r.none = true
		r.unavailable.Add(err)
	}
}

// mayHaveChanged reports whether the devices are to be listed: with the processes, and more often if one is missing.
func (r *run) mayHaveChanged(processes bool) bool {
	if r.isMissing() {
		return r.began >= r.relist.next
	}
	return processes
}

// isListing reports whether the driver has not answered yet which GPUs it has.
func (r *run) isListing() bool {
	return r.driverCall.isUnderWay() || slices.ContainsFunc(r.slots, func(s slot) bool { return s.call.isUnderWay() })
}

// isMissing reports whether a device has no handle: it is lost, or was not listed in this session.
func (r *run) isMissing() bool {
	return slices.ContainsFunc(r.devices, func(g *deviceState) bool { return g.device == nil })
}

// listDevices updates the list of devices.
func (r *run) listDevices() {
	var count int
	var err, closed error
	again := !r.anyReadable() && len(r.calls) == 0 && r.isMissing()
	limit := callTimeout
	if again {
		limit = openTimeout // a GPU that was reset appears in a new session only
		for _, g := range r.devices {
			g.device = nil // its handle ends with the session
		}
	}
	r.callDriver("nvmlDeviceGetCount", limit, func() {
		if again {
			r.driver.close()
			if closed = r.driver.open(); closed != nil {
				return
			}
		}
		count, err = r.driver.count()
	}, func() {
		switch {
		case !r.open:
		case closed != nil:
			r.endSession(closed)
		case isSessionEnded(err):
			r.endSession(err)
		case err != nil:
			r.reports.Add("list", fmt.Errorf("listing the GPUs: %w", err), r.began)
		default:
			r.listSlots(count)
		}
	})
	if r.isMissing() {
		r.relist.failed(r.began)
	}
}

// endSession ends the session after the driver has ended it. No GPU has said that it is lost.
func (r *run) endSession(err error) {
	if !r.open {
		return
	}
	r.open = false
	for _, g := range r.devices {
		g.device = nil
		r.markUnknown(g)
	}
	r.reportUnavailable(err)
	if len(r.calls) == 0 {
		r.callDriver("nvmlShutdown", callTimeout, r.driver.close, func() {})
	}
	r.retry.failed(r.began)
}

func (r *run) anyReadable() bool { return slices.ContainsFunc(r.devices, (*deviceState).readable) }

// awaitAll waits until no call is under way, or until ctx is done.
func (r *run) awaitAll(ctx context.Context) {
	for r.collect(); len(r.calls) > 0 && ctx.Err() == nil; r.collect() {
		select {
		case <-r.returned:
		case <-time.After(patience):
		case <-ctx.Done():
		}
	}
}

// end ends the run. It waits for calls, and then until the session has ended. While a call hangs, the session ends once
// it has returned.
func (r *run) end(longest time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	r.awaitAll(ctx)
	if calls := r.calls; len(calls) > 0 {
		go func() {
			for _, c := range calls {
				<-c.returned
			}
			_ = panicOf(r.driver.close)
		}()
		return
	}
	if r.open || r.closing {
		if c := r.begin(callTimeout, r.driver.close, func(bool) {}, func() {}); c.isUnderWay() {
			r.await(c, callTimeout)
		}
	}
}
