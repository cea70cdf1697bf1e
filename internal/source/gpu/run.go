package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	usually       = time.Second            // between two readings of a GPU: the driver's buffer holds several
	soonest       = 50 * time.Millisecond  // between two rounds, however many are asked for
	soonestDue    = 100 * time.Millisecond // between two readings of a GPU that nobody asked for
	mostBehind    = 1300 * time.Millisecond
	dueBehind     = 1200 * time.Millisecond // a GPU is read before its utilisation is older than this
	mostRows      = 30 * time.Second        // of rows handed over at once, after this process stood still
	gaugesEach    = 950 * time.Millisecond  // memory, temperature, details, events
	processesEach = 10 * time.Second        // a list of processes takes the driver milliseconds
	mostCards     = 256                     // GPUs and MIG slices that are remembered, lost ones included

	callLimit = time.Second      // one reading of one GPU takes microseconds to milliseconds
	openLimit = 30 * time.Second // a driver that nobody uses initialises its GPUs first, for seconds
)

// run is one Source.Run. Only its goroutine touches it; workers touch nothing but the devices.
type run struct {
	driver   driver
	workers  workers
	interval time.Duration
	sink     sample.Sink

	open      bool
	opening   bool // the driver has not answered yet
	retry     backoff
	relist    backoff
	listing   bool
	told      string // why the driver could not be opened; it is told when it changes
	version   string
	listed    int // what the driver's count was
	cards     []*card
	began     time.Duration // the newest round
	next      time.Duration // the next one
	processes time.Duration // when they are read next
	events    time.Duration // when they were read
	noEvents  bool          // the call has not returned, or the driver has none
	used      time.Duration // when the driver's use was told
	dropped   uint64        // values that cannot be, so far

	rows  rows
	notes notes
}

func newRun(d driver, interval time.Duration, sink sample.Sink) *run {
	now := sample.Now()
	return &run{
		driver: d, interval: interval, sink: sink, rows: rows{at: now, interval: interval},
		retry:  backoff{first: 10 * time.Second, most: 5 * time.Minute, at: now.Mono},
		relist: backoff{first: time.Second, most: time.Minute, at: now.Mono}, processes: now.Mono,
	}
}

// backoff spaces out attempts: twice as long after each that failed.
type backoff struct {
	first, most time.Duration
	wait        time.Duration
	at          time.Duration // the next attempt
}

func (b *backoff) failed(now time.Duration) {
	b.wait = min(max(2*b.wait, b.first), b.most)
	b.at = now + b.wait
}

func (b *backoff) worked() { b.wait = 0 }

// cycle asks what is due, and everything when all is asked for, and hands over the rows that this completes.
func (r *run) cycle(ctx context.Context, all bool) {
	r.workers.reap()
	r.resume()
	r.began = sample.Now().Mono
	if !r.open && !r.opening && r.began >= r.retry.at {
		r.tryOpen(ctx)
	}
	if r.open {
		processes := r.began >= r.processes
		if r.needsList(ctx, processes) && !r.listing {
			r.list(ctx)
		}
		r.readAll(ctx, all, processes)
	}
	now := sample.Now()
	upTo := r.reached(now.Mono)
	r.hand(now, upTo)
	if all {
		r.handRest(now, upTo)
	}
	r.plan(now.Mono)
}

// resume lets the GPUs be asked again for which there was no thread.
func (r *run) resume() {
	if !r.workers.available() {
		return
	}
	for _, c := range r.cards {
		if c.waits {
			c.waits = false
			if c.status == sample.GPUHung {
				c.status, c.due = sample.GPUWorks, r.began
			}
		}
	}
}

// plan sets the time of the next round.
func (r *run) plan(now time.Duration) {
	r.next = now + usually
	if !r.open && !r.opening && len(r.cards) == 0 {
		r.next = max(r.retry.at, now+soonestDue)
	}
	for _, c := range r.cards {
		if c.works() {
			r.next = min(r.next, c.due)
		}
	}
	r.next = max(r.next, r.began+soonest)
}

// tryOpen begins a session with the driver and lists its GPUs.
func (r *run) tryOpen(ctx context.Context) {
	var err error
	var devices []device
	var version string
	var count int
	r.opening = true
	opened := func() {
		r.opening = false
		r.opened(devices, version, count, err)
	}
	switch r.do(ctx, openLimit, func() {
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
	case finished:
		opened()
	case abandoned:
		r.tell(fmt.Errorf("the NVIDIA driver has not answered for %v: GPUs are read as soon as it does", openLimit))
	case refused:
		r.opening = false
		r.retry.failed(r.began)
	}
}

var errNoGPU = errors.New("the NVIDIA driver has no GPU: `nvidia-smi -L` lists none either, or this container is given none")

func (r *run) opened(devices []device, version string, count int, err error) {
	now := sample.Now().Mono
	if len(devices) == 0 {
		if err == nil {
			err = errNoGPU
		}
		r.retry.failed(now)
		r.tell(err)
		return
	}
	if r.told != "" && len(r.cards) == 0 {
		r.rows.at = sample.Now() // nothing is known of the time before
	}
	r.retry.worked()
	r.open, r.version, r.told, r.noEvents = true, version, "", false
	r.learnDevices(devices, count, err, now)
}

// tell says why there are no GPUs, once for each reason.
func (r *run) tell(err error) {
	if err.Error() == r.told {
		return
	}
	r.told = err.Error()
	if len(r.cards) > 0 {
		r.notes.add(r.told, err, sample.Now().Mono)
		return
	}
	at := sample.Now()
	r.rows.at = at
	r.sink(sourceName, &sample.Sample{At: at}, err)
}

// needsList says whether the GPUs may have changed.
func (r *run) needsList(ctx context.Context, check bool) bool {
	if slices.ContainsFunc(r.cards, func(c *card) bool { return c.device == nil }) {
		return r.began >= r.relist.at
	}
	if !check {
		return false
	}
	count := r.listed
	var err error
	if r.do(ctx, callLimit, func() { count, err = r.driver.count() }, func() {}) != finished {
		return false
	}
	if isEnded(err) {
		r.ended(err)
		return false
	}
	return err == nil && count != r.listed
}

// list looks for GPUs that came, went and returned.
func (r *run) list(ctx context.Context) {
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
		if closed != nil || isEnded(err) {
			r.ended(err)
			return
		}
		r.learnDevices(devices, count, err, sample.Now().Mono)
	}
	limit, again := callLimit, !r.anyWorks() && len(r.workers.stuck) == 0
	if again {
		limit = openLimit // a GPU that was reset shows up in a new session alone, which others would not survive
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
	case finished:
		listed()
	case refused:
		r.listing = false
	case abandoned:
	}
}

// ended forgets a session that the driver has ended.
func (r *run) ended(err error) {
	if !r.open {
		return
	}
	r.open = false
	for _, c := range r.cards {
		c.lose()
		r.tellXIDs(c)
	}
	r.rows.processes, r.rows.processesRead = nil, true // none is known any more
	r.tell(err)
	if len(r.workers.stuck) == 0 {
		r.do(context.Background(), callLimit, r.driver.close, func() {})
	}
	r.retry.failed(r.began)
}

// do makes calls on a worker, and lets the rows of the others go on while they last.
func (r *run) do(ctx context.Context, limit time.Duration, job, late func()) outcome {
	return r.workers.do(ctx, limit, soonestDue, func() time.Duration {
		now := sample.Now()
		r.hand(now, now.Mono-mostBehind)
		return r.interval
	}, job, late)
}

func (r *run) anyWorks() bool { return slices.ContainsFunc(r.cards, (*card).works) }

// end ends what run began. Where a call does not return, the session ends when it does.
func (r *run) end() {
	r.workers.reap()
	if r.open && len(r.workers.stuck) == 0 {
		r.workers.do(context.Background(), callLimit, callLimit, func() time.Duration { return callLimit }, r.driver.close, func() {})
	}
	r.workers.end(r.driver.close)
}
