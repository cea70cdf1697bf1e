package scenario

import (
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// Counters are a disk's own, from /proc/diskstats (Documentation/admin-guide/iostats.rst).
type Counters struct {
	Read  Direction `json:"read"`
	Write Direction `json:"write"`
	Sums
}

// Direction is what a disk did of reads or of writes.
type Direction struct {
	Operations uint64        `json:"operations"`
	Bytes      uint64        `json:"bytes"`
	Time       time.Duration `json:"time_ns"` // summed over operations; the counters have milliseconds
}

// Sums are what results of before reads and writes were told apart have instead.
type Sums struct {
	Operations uint64 `json:"operations,omitempty"` // reads and writes
	Bytes      uint64 `json:"bytes,omitempty"`
	Reads      uint64 `json:"reads,omitempty"`
	ReadMillis uint64 `json:"read_ms,omitempty"`
}

// counters reads those of one disk. Writing down what a caller of many disks needs is internal/source/disk's work: this is
// a second pair of eyes, so it shares no code with it.
func counters(device string) (Counters, error) {
	text, err := os.ReadFile("/proc/diskstats")
	if err != nil {
		return Counters{}, err
	}
	return parseCounters(string(text), device)
}

func parseCounters(text, device string) (Counters, error) {
	for line := range strings.Lines(text) {
		var name string
		var major, minor, merged, readSectors, readMillis, writeSectors, writeMillis uint64
		var r, w Direction
		n, _ := fmt.Sscan(line, &major, &minor, &name, &r.Operations, &merged, &readSectors, &readMillis,
			&w.Operations, &merged, &writeSectors, &writeMillis)
		if n == 11 && name == device {
			r.Bytes, r.Time = readSectors*512, time.Duration(readMillis)*time.Millisecond
			w.Bytes, w.Time = writeSectors*512, time.Duration(writeMillis)*time.Millisecond
			return Counters{Read: r, Write: w}, nil
		}
	}
	return Counters{}, fmt.Errorf("/proc/diskstats has no line for %s", device)
}

func (c Counters) minus(d Counters) Counters {
	return Counters{Read: c.Read.minus(d.Read), Write: c.Write.minus(d.Write)}
}

func (d Direction) minus(e Direction) Direction {
	return Direction{d.Operations - e.Operations, d.Bytes - e.Bytes, d.Time - e.Time}
}

// await is the mean time of an operation in seconds, 0 where there was none.
func (d Direction) await() float64 {
	if d.Operations == 0 {
		return 0
	}
	return d.Time.Seconds() / float64(d.Operations)
}

// Device holds a disk in the report against its counters. Both were read at the edges of the window, but not at once: the
// counters were read before and after the monitor's own reading, so they tell what was done at least and at most. An
// error is what lies beyond these two, of reads and of writes each.
type Device struct {
	Name  string   `json:"name"`
	Found Counters `json:"found"` // in the report
	Least Counters `json:"least"` // done between the edges
	Most  Counters `json:"most"`

	OperationsError uint64   `json:"operations_error"` // of reads and of writes, added
	BytesError      uint64   `json:"bytes_error"`
	AwaitError      *float64 `json:"await_error,omitempty"` // of reads, relative; absent where there were none
	WriteAwaitError *float64 `json:"write_await_error,omitempty"`
}

// compare looks the disk up in a report. One that did nothing is in none.
func (d *Device) compare(r *window.Report) {
	*d = Device{Name: d.Name, Least: d.Least, Most: d.Most}
	found := &d.Found
	for i := range r.Disks {
		if use := &r.Disks[i]; use.Name == d.Name {
			found.Read = Direction{use.ReadOperations, use.ReadBytes, use.ReadTime}
			found.Write = Direction{use.WriteOperations, use.WriteBytes, use.WriteTime}
		}
	}
	if d.Most.Sums != (Sums{}) {
		d.compareSums()
		return
	}
	d.AwaitError = d.direction(found.Read, d.Least.Read, d.Most.Read)
	d.WriteAwaitError = d.direction(found.Write, d.Least.Write, d.Most.Write)
}

// direction adds the errors of one direction, and is that of its await: nil where there was no operation.
func (d *Device) direction(found, least, most Direction) *float64 {
	d.OperationsError += beyond(found.Operations, least.Operations, most.Operations)
	d.BytesError += beyond(found.Bytes, least.Bytes, most.Bytes)
	return awaitError(found, least, most)
}

// compareSums is for older results: what is known of writes there is their number, added to that of reads.
func (d *Device) compareSums() {
	found, least, most := &d.Found, d.Least.Sums, d.Most.Sums
	d.OperationsError = beyond(found.Read.Operations+found.Write.Operations, least.Operations, most.Operations)
	d.BytesError = beyond(found.Read.Bytes+found.Write.Bytes, least.Bytes, most.Bytes)
	d.AwaitError = awaitError(found.Read, least.read(), most.read())
}

func (s Sums) read() Direction {
	return Direction{Operations: s.Reads, Time: time.Duration(s.ReadMillis) * time.Millisecond}
}

// awaitError is how far the mean time of an operation lies beyond the other two, relative to the larger one.
func awaitError(found, least, most Direction) *float64 {
	if most.Operations == 0 {
		return nil
	}
	low, high := least.await(), most.await()
	low, high = min(low, high), max(low, high)
	off := 0.0
	if by := max(low-found.await(), found.await()-high); by > 0 && high > 0 {
		off = math.Round(by/high*1e6) / 1e6
	}
	return &off
}

// idle says that neither was anything done nor was anything found: there is nothing to be right about.
func (d *Device) idle() bool { return d.Most == Counters{} && d.Found == Counters{} }

func beyond(v, low, high uint64) uint64 {
	switch {
	case v < low:
		return low - v
	case v > high:
		return v - high
	}
	return 0
}
