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
	sample.Grid

	processesRead bool           // there is a new list of a device's processes
	garbage       map[string]int // garbage values that were not reported yet
	details       []sample.GPUDetail
	driverUse     *sample.DriverUse

	sample sample.Sample
}

// emitRows emits the rows up to a time. The first one is of now: the next ones may have to wait for seconds.
func (r *run) emitRows(now sample.Stamp, until time.Duration, partial bool) {
	if !r.grid.Begun {
		until = now.Mono
	}
	if len(r.devices) > 0 {
		r.grid.Rows(now, until, partial, r.emitRow)
	}
}

func (r *run) emitRow(at sample.Stamp, step time.Duration) {
	s := &r.grid.sample
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
