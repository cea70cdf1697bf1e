package gpu

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// grid is the time axis of the rows, and what the next row contains apart from the GPUs.
type grid struct {
	at       sample.Stamp // time of the newest row, or the start
	interval time.Duration
	begun    bool // there was a row

	processesRead bool           // there is a new list of a device's processes
	garbage       map[string]int // garbage values that were not reported yet
	details       []sample.GPUDetail
	driverUse     *sample.DriverUse

	sample sample.Sample
}

// emitRows emits the rows up to a time.
func (r *run) emitRows(now sample.Stamp, until time.Duration) {
	if len(r.devices) == 0 {
		return
	}
	step := r.interval
	if behind := until - r.grid.at.Mono; behind > maxCatchUp {
		step = (behind - maxCatchUp).Truncate(r.interval) + r.interval
	}
	for ; r.grid.at.Mono+step <= until; step = r.interval {
		r.emitRow(now, step)
	}
}

// emitFirstRow emits one row at once, so that the GPUs are known: the next ones may have to wait for seconds.
func (r *run) emitFirstRow(now sample.Stamp) {
	if r.grid.begun || len(r.devices) == 0 {
		return
	}
	r.grid.begun = true
	if step := now.Mono - r.grid.at.Mono; step > 0 {
		r.emitRow(now, step)
	}
}

// emitPartialRow emits one more row at the end of a window, between two rows of the grid.
func (r *run) emitPartialRow(now sample.Stamp, until time.Duration) {
	if step := until - r.grid.at.Mono; len(r.devices) > 0 && step >= minPartialRow && step < r.interval {
		r.emitRow(now, step)
	}
}

// minPartialRow is the shortest interval of a partial row.
const minPartialRow = 5 * time.Millisecond

func (r *run) emitRow(now sample.Stamp, step time.Duration) {
	r.grid.at = r.grid.at.Next(now, step)
	at, s := r.grid.at, &r.grid.sample
	s.Reset()
	s.At = at
	for _, g := range r.devices {
		s.GPUs = append(s.GPUs, g.row(at.Mono, step))
	}
	if r.grid.processesRead {
		s.GPUProcessesRead = true
		for _, g := range r.devices {
			s.GPUProcesses = append(s.GPUProcesses, g.processes...)
		}
		r.grid.processesRead = false
	}
	s.GPUDetails, s.DriverUse = append(s.GPUDetails, r.grid.details...), r.grid.driverUse
	r.grid.details, r.grid.driverUse = r.grid.details[:0], nil
	r.reportGarbage(at.Mono)
	r.sink(sourceName, s, r.reports.Take())
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
	if len(r.grid.garbage) == 0 {
		return
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(r.grid.garbage)) {
		parts = append(parts, fmt.Sprintf("%d of %s", r.grid.garbage[what], what))
	}
	err := fmt.Errorf("the NVIDIA driver returned impossible values, which were dropped: %s; "+
		"look for Xid in the kernel log", strings.Join(parts, ", "))
	if r.reports.Add("garbage", err, now) {
		r.grid.garbage = nil
	}
}
