// Package amd reads AMD GPUs from files of the kernel driver amdgpu, without a library: the table gpu_metrics, and for
// what a chip's table lacks, single files below /sys/class/drm. Busy time is the growth of the firmware's sum of
// activity. A chip without one has an average, which says nothing of the time before it: see sample.AveragesBusy.
//
// No file stays open. A read may hang with its GPU, so each card has one goroutine, for one read at a time. A card that
// sleeps is not woken.
package amd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// Options are where the files are, and the resolution.
type Options struct {
	Root     string        // of the machine's /proc and /sys; "" for /
	Interval time.Duration // between two rows
}

const (
	sourceName   = "gpu"
	readInterval = time.Second
	minInterval  = 50 * time.Millisecond  // between two rounds
	patience     = 100 * time.Millisecond // a round waits so long for its reads
	hangs        = time.Second            // a read that takes longer
	listEvery    = 10 * time.Second       // cards, and processes that did not change
	restAfter    = time.Minute            // a card that may sleep is not read without a process that uses it
)

var errNotClosed = errors.New("a read of a file of amdgpu does not return: look for amdgpu in the kernel log, or " +
	"stop this program")

// Reads reports whether the GPUs that are read are those of this package: there are some, and none of NVIDIA's, whose
// driver may be loaded later.
func Reads(root, nvml string) bool {
	for _, other := range []string{"proc/driver/nvidia", "dev/dxg"} {
		if _, err := os.Stat(filepath.Join("/", root, other)); err == nil {
			return false
		}
	}
	return nvml == "" && len(kernfile.Displays(root, "0x10de")) == 0 && len(list(filepath.Join("/", root))) > 0
}

// Source is a sample.Stream of the AMD GPUs of this machine.
type Source struct {
	root     string
	interval time.Duration

	sample.Rounds

	releasedUntil atomic.Int64 // a time.Duration, Stamp.Mono; see Release
	open          atomic.Bool  // a read was under way at the end of the newest round
}

var _ sample.Stream = (*Source)(nil)

// New prepares a source without reading anything.
func New(o Options) *Source {
	return &Source{root: filepath.Join("/", o.Root), interval: o.Interval}
}

// run is one call of Source.Run. Only its goroutine accesses it.
type run struct {
	*Source
	sink    sample.Sink
	states  []*state
	listed  time.Duration // when the cards were listed; 0 for never
	grid    sample.Grid
	sample  sample.Sample
	users   users
	reports sample.Reports
}

// Run implements sample.Stream.
func (s *Source) Run(ctx context.Context, sink sample.Sink) {
	r := &run{Source: s, sink: sink, grid: sample.Grid{At: sample.Now(), Interval: s.interval}, users: users{root: s.root}}
	s.SetRunning(true)
	for ctx.Err() == nil {
		waiting := s.TakeWaiters()
		began := sample.Now().Mono
		r.poll()
		if waiting != nil {
			close(waiting)
		}
		s.Pause(ctx, began+readInterval, began+minInterval, nil)
	}
	s.SetRunning(false)
	until := time.Now().Add(hangs)
	for _, g := range r.states {
		g.reading.wait(time.Until(until))
	}
	r.users.listing.wait(time.Until(until))
	s.open.Store(r.isReading())
}

// Release has nothing of the driver read for a time, and returns once no file of it is open. With 0 it is read again.
func (s *Source) Release(ctx context.Context, length time.Duration) error {
	until := time.Duration(0)
	if length > 0 {
		until = sample.Now().Mono + length
	}
	s.releasedUntil.Store(int64(until))
	s.CatchUp(ctx)
	if length > 0 && (s.open.Load() || ctx.Err() != nil) {
		return errNotClosed
	}
	return nil
}

// isReading reports whether a read is under way.
func (r *run) isReading() bool {
	return r.users.listing.isUnderWay() ||
		slices.ContainsFunc(r.states, func(g *state) bool { return g.reading.isUnderWay() })
}

// poll reads the cards, and emits the rows that this completes.
func (r *run) poll() {
	now := sample.Now().Mono
	released := int64(now) < r.releasedUntil.Load()
	if r.listed == 0 || now-r.listed >= listEvery {
		r.listed = now
		r.list(now)
	}
	if !released {
		r.users.begin(r.states, now)
	}
	for _, g := range r.states {
		r.begin(g, now, released)
	}
	until := sample.Now().Mono + patience
	for _, g := range r.states {
		if result, ok := g.reading.wait(until - sample.Now().Mono); ok && !g.hung {
			g.apply(&result)
			r.report(result.problem())
		} else if g.reading.isUnderWay() {
			r.look(g)
		} else if ok {
			g.hung, g.status = false, sample.GPUUnknown // what it returned is old
		}
	}
	if r.users.end(until - sample.Now().Mono) {
		r.sample.GPUProcesses, r.sample.GPUProcessesRead = r.users.processes, true
	}
	r.open.Store(r.isReading())
	r.emit(sample.Now())
}

// list takes over the cards that are listed now. One that is missing is lost.
func (r *run) list(now time.Duration) {
	cards := list(r.root)
	for _, g := range r.states {
		i := slices.IndexFunc(cards, func(c *card) bool { return c.info.ID == g.card.info.ID })
		if g.lost = i < 0; g.lost {
			continue
		}
		if cards[i].folder != g.card.folder {
			g.card = cards[i]
		}
		cards = slices.Delete(cards, i, i+1)
	}
	for _, c := range cards {
		if len(r.states) < maxCards {
			r.states = append(r.states, &state{card: c, used: now})
		}
	}
}

// begin begins to read a card, unless it sleeps or is released, or a read of it has not returned.
func (r *run) begin(g *state, now time.Duration, released bool) {
	switch {
	case g.reading.isUnderWay():
		return
	case g.lost:
		g.leave(sample.GPULost)
		return
	case released:
		g.leave(sample.GPUReleased)
		return
	case g.rests(r.users.uses(g.card.info.ID), now):
		g.leave(sample.GPUAsleep)
		return
	}
	what := request{rest: now-g.restAt >= restEvery || g.restAt == 0, slow: now-g.slowAt >= slowEvery || g.slowAt == 0}
	if what.slow = what.slow && what.rest; what.slow {
		g.slowAt = now
	}
	card := g.card
	g.reading.start(now, func() reading { return card.read(what) })
}

// look notes a card whose read does not return.
func (r *run) look(g *state) {
	if now := sample.Now().Mono; !g.hung && now-g.reading.began >= hangs {
		g.hung = true
		g.leave(sample.GPUHung)
		r.report(errors.New("GPU " + g.card.info.ID + " hangs: its files have not returned for " + hangs.String() +
			"; it is read again once they do; look for amdgpu in the kernel log"))
	}
}

// report reports a problem with the next row, once a minute.
func (r *run) report(err error) {
	if err != nil {
		r.reports.Add(err.Error(), err, sample.Now().Mono)
	}
}

// emit emits the rows up to the newest reading of all cards that work.
func (r *run) emit(now sample.Stamp) {
	if len(r.states) == 0 {
		return
	}
	until := now.Mono
	for _, g := range r.states {
		if g.status == sample.GPUWorks && !g.reading.isUnderWay() {
			until = min(until, g.at)
		}
	}
	r.grid.Rows(now, until, true, func(at sample.Stamp, step time.Duration) {
		s := &r.sample
		s.At = at
		for _, g := range r.states {
			s.GPUs = append(s.GPUs, g.row(at.Mono, step))
			if g.detail != nil && g.detail.At <= at.Mono {
				s.GPUDetails, g.detail = append(s.GPUDetails, *g.detail), nil
			}
		}
		r.sink(sourceName, s, r.reports.Take())
		s.Reset()
	})
}

// task is work on files that may never return, on a goroutine of its own. The zero value has none.
type task[T any] struct {
	result chan T        // nil for none under way
	began  time.Duration // Stamp.Mono
}

func (t *task[T]) isUnderWay() bool { return t.result != nil }

// start starts a job. One that panics returns the zero value.
func (t *task[T]) start(now time.Duration, job func() T) {
	result := make(chan T, 1)
	t.result, t.began = result, now
	go func() {
		var out T
		_ = sample.Protect(func() { out = job() }) // counted there
		result <- out
	}()
}

// wait waits for the job that is under way.
func (t *task[T]) wait(longest time.Duration) (out T, ok bool) {
	if t.result == nil {
		return out, false
	}
	late := time.NewTimer(max(longest, time.Millisecond))
	defer late.Stop()
	select {
	case out = <-t.result:
		t.result = nil
		return out, true
	case <-late.C:
		return out, false
	}
}
