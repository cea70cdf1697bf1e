package gpu

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// grid is the time axis of the rows of all GPUs, and what the next row contains apart from them.
type grid struct {
	sample.Grid
	runs     []*run
	sink     sample.Sink
	memory   *memoryInUse  // of the Source
	returned chan struct{} // buffer of one: a call has returned
	next     time.Duration // start of the next round
	began    time.Duration

	reports     sample.Reports
	unavailable sample.Problems // why there are no GPUs, since the last row
	none        bool            // it is known that a driver has none, since the last row

	processesRead bool   // there is a new list of a device's processes
	dropped       uint64 // garbage values so far
	details       []sample.GPUDetail
	driverUse     *sample.DriverUse

	sample sample.Sample
}

func newGrid(interval time.Duration, sink sample.Sink, memory *memoryInUse) *grid {
	now := sample.Now()
	return &grid{Grid: sample.Grid{At: now, Interval: interval}, sink: sink, memory: memory, began: now.Mono,
		returned: make(chan struct{}, 1)}
}

// poll reads what is due, or everything if all is set, and emits the rows that this completes.
func (w *grid) poll(ctx context.Context, all bool) {
	for _, r := range w.runs {
		r.poll(ctx, all)
	}
	now := sample.Now()
	w.emitRows(now, all)
	w.next = now.Mono + maxPause
	for _, r := range w.runs {
		w.next = min(w.next, r.schedule(now.Mono))
	}
}

func (w *grid) anyReadable() bool { return slices.ContainsFunc(w.runs, (*run).anyReadable) }

// isClosed reports whether no file of a driver is open.
func (w *grid) isClosed() bool {
	return !slices.ContainsFunc(w.runs, func(r *run) bool { return r.open || r.closing || len(r.calls) > 0 })
}

func (w *grid) hasDevices() bool {
	return slices.ContainsFunc(w.runs, func(r *run) bool { return len(r.devices) > 0 })
}

// maxFirst bounds how long the first row, with which a program's GPUs become known, waits until each driver has listed
// its own.
const maxFirst = 1800 * time.Millisecond

// emitRows emits the rows that are complete. The first one is of now: the next ones may have to wait for seconds.
func (w *grid) emitRows(now sample.Stamp, partial bool) {
	if !w.Begun && now.Mono-w.began < maxFirst && slices.ContainsFunc(w.runs, (*run).isListing) {
		return
	}
	if !w.hasDevices() {
		if w.none {
			w.At = now
			w.sink(sourceName, &sample.Sample{At: now}, w.takeProblems())
		}
		return
	}
	until := now.Mono
	for _, r := range w.runs {
		if w.Begun {
			until = min(until, r.completeUntil(now.Mono))
		}
	}
	w.Rows(now, until, partial, w.emitRow)
}

// takeProblems returns the problems since the last row.
func (w *grid) takeProblems() error {
	w.unavailable.Add(w.reports.Take())
	err := w.unavailable.Err()
	w.unavailable.Reset()
	w.none = false
	return err
}

func (w *grid) emitRow(at sample.Stamp, step time.Duration) {
	s := &w.sample
	s.Reset()
	s.At, s.GPUProcessesRead = at, w.processesRead
	for _, r := range w.runs {
		for _, g := range r.devices {
			s.GPUs = append(s.GPUs, g.row(at.Mono, step))
			if w.processesRead {
				s.GPUProcesses = append(s.GPUProcesses, g.processes...)
			}
		}
		r.reportGarbage(at.Mono)
	}
	s.GPUDetails, s.DriverUse = append(s.GPUDetails, w.details...), w.driverUse
	w.details, w.driverUse, w.processesRead = w.details[:0], nil, false
	w.sink(sourceName, s, w.takeProblems())
}

// addDetail adds details to the next row, in place of older details of the same GPU.
func (w *grid) addDetail(d sample.GPUDetail) {
	if i := slices.IndexFunc(w.details, func(old sample.GPUDetail) bool { return old.GPU == d.GPU }); i >= 0 {
		w.details[i] = d
		return
	}
	w.details = append(w.details, d)
}

// reportGarbage reports the garbage values, once a minute.
func (r *run) reportGarbage(now time.Duration) {
	if len(r.garbage) == 0 {
		return
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(r.garbage)) {
		parts = append(parts, fmt.Sprintf("%d of %s", r.garbage[what], what))
	}
	err := fmt.Errorf("%s returned impossible values, which were dropped: %s; look for %s in the kernel log",
		r.maker.driver, strings.Join(parts, ", "), r.maker.trace)
	if r.reports.Add("garbage of "+r.maker.driver, err, now) {
		r.garbage = nil
	}
}
