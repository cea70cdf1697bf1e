package scenario

import (
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// Counters are the counters of one disk in /proc/diskstats (Documentation/admin-guide/iostats.rst).
type Counters struct {
	Read  Direction `json:"read"`
	Write Direction `json:"write"`
	Sums
}

// Direction holds a disk's reads or writes.
type Direction struct {
	Operations uint64        `json:"operations"`
	Bytes      uint64        `json:"bytes"`
	Time       time.Duration `json:"time_ns"` // summed over operations; the kernel counts milliseconds
}

// Sums replaces reads and writes in results of older versions, which did not separate them.
type Sums struct {
	Operations uint64 `json:"operations,omitempty"` // reads plus writes
	Bytes      uint64 `json:"bytes,omitempty"`
	Reads      uint64 `json:"reads,omitempty"`
	ReadMillis uint64 `json:"read_ms,omitempty"`
}

// counters reads the counters of one disk. It checks internal/source/disk, so it shares no code with it.
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

// await returns the mean time of an operation in seconds, 0 without operations.
func (d Direction) await() float64 {
	if d.Operations == 0 {
		return 0
	}
	return d.Time.Seconds() / float64(d.Operations)
}

// Device compares a disk in the report with the disk's counters. Both were read at the edges of the window, but not at
// the same moment. The counters were read before and after the monitor's reading, so they give a lower and an upper
// bound. The error is what lies outside of the bounds, for reads and for writes.
type Device struct {
	Name  string   `json:"name"`
	Found Counters `json:"found"` // in the report
	Least Counters `json:"least"` // between the edges
	Most  Counters `json:"most"`

	OperationsError uint64   `json:"operations_error"` // reads plus writes
	BytesError      uint64   `json:"bytes_error"`
	AwaitError      *float64 `json:"await_error,omitempty"` // of reads, relative; absent without reads
	WriteAwaitError *float64 `json:"write_await_error,omitempty"`
}

// compare finds the disk in a report. A report omits disks without I/O.
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

// direction adds the errors of one direction and returns the error of its await, nil without operations.
func (d *Device) direction(found, least, most Direction) *float64 {
	d.OperationsError += beyond(found.Operations, least.Operations, most.Operations)
	d.BytesError += beyond(found.Bytes, least.Bytes, most.Bytes)
	return awaitError(found, least, most)
}

// compareSums is for older results, which hold the sums of reads and writes only.
func (d *Device) compareSums() {
	found, least, most := &d.Found, d.Least.Sums, d.Most.Sums
	d.OperationsError = beyond(found.Read.Operations+found.Write.Operations, least.Operations, most.Operations)
	d.BytesError = beyond(found.Read.Bytes+found.Write.Bytes, least.Bytes, most.Bytes)
	d.AwaitError = awaitError(found.Read, least.read(), most.read())
}

func (s Sums) read() Direction {
	return Direction{Operations: s.Reads, Time: time.Duration(s.ReadMillis) * time.Millisecond}
}

// awaitError is the distance of an await from the interval of the other two, relative to the larger one.
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

// idle reports whether there was no operation, neither in the counters nor in the report.
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
