package gpu

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// rows is the grid on which readings are handed over.
type rows struct {
	at       sample.Stamp // the newest row, or the moment before the first
	interval time.Duration

	processes     []sample.GPUProcess
	processesRead bool
	garbage       map[string]int // garbage that was not told yet
	details       []sample.GPUDetail
	driverUse     *sample.DriverUse

	sample sample.Sample
}

// hand gives the rows up to a moment to the sink.
func (r *run) emitRows(now sample.Stamp, upTo time.Duration) {
	if len(r.devices) == 0 {
		return
	}
	step := r.interval
	if behind := upTo - r.rows.at.Mono; behind > maxCatchUp {
		step = (behind - maxCatchUp).Truncate(r.interval) + r.interval
	}
	for ; r.rows.at.Mono+step <= upTo; step = r.interval {
		r.emitRow(now, step)
	}
}

// handRest gives one more row, of a moment between two of the grid: a window ends there, and what is not told of its end is
// taken to go on as it did last.
func (r *run) emitPartialRow(now sample.Stamp, upTo time.Duration) {
	if step := upTo - r.rows.at.Mono; len(r.devices) > 0 && step >= minPartialRow && step < r.interval {
		r.emitRow(now, step)
	}
}

// leastRest is the shortest time of which handRest tells.
const minPartialRow = 5 * time.Millisecond

func (r *run) emitRow(now sample.Stamp, step time.Duration) {
	at := r.rows.next(now, step)
	s := &r.rows.sample
	s.Reset()
	s.At = at
	for _, c := range r.devices {
		s.GPUs = append(s.GPUs, c.row(at.Mono, step))
	}
	if r.rows.processesRead {
		s.GPUProcesses, s.GPUProcessesRead = append(s.GPUProcesses, r.rows.processes...), true
		r.rows.processesRead = false
	}
	s.GPUDetails, s.DriverUse = append(s.GPUDetails, r.rows.details...), r.rows.driverUse
	r.rows.details, r.rows.driverUse = r.rows.details[:0], nil
	r.reportGarbage(at.Mono)
	r.sink(sourceName, s, r.notes.take())
}

// detail lets the next row tell what a GPU told, in the place of what it told before.
func (w *rows) addDetail(d sample.GPUDetail) {
	if i := slices.IndexFunc(w.details, func(old sample.GPUDetail) bool { return old.GPU == d.GPU }); i >= 0 {
		w.details[i] = d
		return
	}
	w.details = append(w.details, d)
}

// next is the stamp of the next row. Its wall time is what the present one is, less the age of the row: it follows a
// clock that was set, and else rises as the rows do.
func (w *rows) next(now sample.Stamp, step time.Duration) sample.Stamp {
	mono := w.at.Mono + step
	wall := now.Wall.Add(mono - now.Mono)
	if back := w.at.Wall.Sub(wall); back >= 0 && back < time.Second {
		wall = w.at.Wall.Add(time.Microsecond) // the clock is slewed; only one that was set back goes back
	}
	w.at = sample.Stamp{Mono: mono, Wall: wall}
	return w.at
}

// tellDropped tells, once a minute, which values were no possible ones.
func (r *run) reportGarbage(now time.Duration) {
	if len(r.rows.garbage) == 0 {
		return
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(r.rows.garbage)) {
		parts = append(parts, fmt.Sprintf("%d of %s", r.rows.garbage[what], what))
	}
	err := fmt.Errorf("the NVIDIA driver gave values that cannot be, which were left out: %s; look for Xid in the kernel's log",
		strings.Join(parts, ", "))
	if r.notes.add("garbage", err, now) {
		r.rows.garbage = nil
	}
}
