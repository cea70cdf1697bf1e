// Package past writes the past of the agent's machine to the store: curves made from the history in memory, windows
// that ended, events, and the GPU time of jobs.
package past

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/store"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	period     = 10 * time.Second          // of an interval
	lag        = history.Lag + time.Second // until all samples of an interval are in the history
	flushEvery = time.Minute               // what a kill may lose
	catchUp    = time.Hour                 // how much of the past is written after a disk was full or hung
	stopTime   = 5 * time.Second           // how long Stop waits for a disk that hangs
)

// tolerance is how far the clocks may move against each other before an interval is left out.
const tolerance = time.Second

// Recorder records one machine. It is safe for concurrent use. A nil Recorder records nothing.
type Recorder struct {
	writer   *store.Writer
	ctx      context.Context
	cancel   context.CancelFunc
	stopping sync.Once
	ended    chan struct{} // closed when the goroutine ends; nil before Start

	times times

	of       *history.History // and the rest belongs to the goroutine
	report   func(error)
	done     time.Duration // monotonic time up to which intervals are written
	retry    time.Duration // when the folder is opened again
	flush    time.Duration // when the file is written again
	reported uint64        // losses
}

// New returns a recorder that writes to a folder once it is started.
func New(o store.Options) *Recorder {
	r := &Recorder{writer: store.New(o)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Start begins to record. report receives each problem.
func (r *Recorder) Start(h *history.History, t Times, report func(error)) {
	if r == nil {
		return
	}
	r.of, r.times.Times, r.report, r.ended = h, t, report, make(chan struct{})
	r.begin(sample.Now())
	go func() { // owned by r: see Stop
		defer close(r.ended)
		sample.Restart(r.ctx, report, r.run)
	}()
}

func (r *Recorder) begin(now sample.Stamp) {
	r.done, r.flush = now.Mono, now.Mono+flushEvery
	r.times.next = now.Mono + timesEvery
}

// Stop writes the rest, and waits for it: for five seconds at most.
func (r *Recorder) Stop() {
	if r == nil || r.ended == nil {
		return
	}
	r.cancel()
	r.stopping.Do(func() {
		sample.Within(stopTime, func() { <-r.ended })
	})
}

func (r *Recorder) run() {
	r.open(sample.Now()) // what earlier programs wrote can be read at once
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-r.ctx.Done():
			r.close(sample.Now())
			return
		case <-ticker.C:
			r.round(sample.Now())
		}
	}
}

// Window takes a window that ended. It waits for no disk. A client's slow windows have as much room as its others.
func (r *Recorder) Window(w *window.Report) {
	if r == nil {
		return
	}
	lane := trust.Lane(w.Client)
	if w.Slow {
		lane += ", slow"
	}
	report := explain.NewReport(w)
	text, err := json.Marshal(report)
	if err != nil {
		return // a number that JSON cannot represent
	}
	r.writer.AddEntry(store.Entry{Kind: store.Window, At: report.End, Client: w.Client, Text: text, Lane: lane})
}

// Keep takes a window of a client that another program has measured, as JSON. It waits for no disk. report must not
// change later.
func (r *Recorder) Keep(ended time.Time, client string, report []byte) {
	if r != nil {
		r.writer.AddEntry(store.Entry{Kind: store.Window, At: ended, Client: client, Text: report, Lane: trust.Lane(client)})
	}
}

// Event takes an event in the form of the API. client is whose window it is about, or "", and lane whose room it takes.
// It waits for no disk. line must not change later.
func (r *Recorder) Event(at time.Time, client, lane string, line []byte) {
	if r != nil {
		r.writer.AddEntry(store.Entry{Kind: store.Event, At: at, Client: client, Text: line, Lane: lane})
	}
}

// round writes what is new.
func (r *Recorder) round(now sample.Stamp) {
	if !r.open(now) {
		return
	}
	r.advance(now)
	if r.times.pass(now, false, r.writer) || now.Mono >= r.flush {
		r.flush = now.Mono + flushEvery
		r.note(r.writer.Flush(now))
	}
}

// close writes the rest, with the interval that is not complete lost.
func (r *Recorder) close(now sample.Stamp) {
	if !r.open(now) {
		return
	}
	r.advance(now)
	r.times.pass(now, true, r.writer)
	r.note(r.writer.Close(now))
}

// open opens the folder, and tries again after a minute.
func (r *Recorder) open(now sample.Stamp) bool {
	if r.writer.Opened() {
		return true
	}
	if now.Mono < r.retry && r.ctx.Err() == nil {
		return false
	}
	if err := r.writer.Open(); err != nil {
		r.retry = now.Mono + flushEvery
		r.note(fmt.Errorf("the history is not written: %w", err))
		return false
	}
	return true
}

// note reports an error, or new losses.
func (r *Recorder) note(err error) {
	if err != nil {
		r.report(err)
	}
	if lost := r.writer.Lost(); lost > r.reported {
		r.reported = lost
		r.report(errors.New("parts of the history are missing, because they came too fast or could not be written"))
	}
}

// advance adds the intervals that are complete. They begin at multiples of the period on the wall clock.
func (r *Recorder) advance(now sample.Stamp) {
	r.done = max(r.done, now.Mono-catchUp)
	zero := now.Wall.Add(-now.Mono) // the wall time of monotonic zero
	for {
		start := zero.Add(r.done + period - tolerance).Truncate(period)
		i := interval{r.of, start.Sub(zero), start.Sub(zero) + period}
		if i.end+lag > now.Mono {
			return
		}
		devices, jobs := i.devices(), i.jobs()
		r.writer.Add(store.Devices, devices.columns, start, period, devices.values)
		r.writer.Add(store.Jobs, jobs.columns, start, period, jobs.values)
		r.done = i.end
	}
}

// Copy writes what is between two times in the form of the store's files. With owns, it leaves out the jobs, and the
// windows of clients for which that is false. The newest seconds are missing.
func (r *Recorder) Copy(to io.Writer, from, until time.Time, shows func(store.Entry) bool) error {
	if !r.writer.Opened() {
		return errors.New("the history is not written yet: try again in ten seconds, or see stallspan check")
	}
	return r.writer.Copy(to, from, until, shows)
}

// Oldest returns the first time that may be in the files. It is not known before they are open. It does
// not wait for a disk.
func (r *Recorder) Oldest() (at time.Time, ok bool) { return r.writer.Oldest() }
