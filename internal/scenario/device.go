package scenario

import (
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/stallspan/stallspan/internal/window"
)

// Counters are a disk's own, from /proc/diskstats (Documentation/admin-guide/iostats.rst).
type Counters struct {
	Operations uint64 `json:"operations"` // reads and writes
	Bytes      uint64 `json:"bytes"`
	Reads      uint64 `json:"reads"`
	ReadMillis uint64 `json:"read_ms"` // summed over reads
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
		var major, minor, reads, readsMerged, readSectors, readMillis, writes, writesMerged, writeSectors uint64
		n, _ := fmt.Sscan(line, &major, &minor, &name, &reads, &readsMerged, &readSectors, &readMillis,
			&writes, &writesMerged, &writeSectors)
		if n == 10 && name == device {
			return Counters{reads + writes, (readSectors + writeSectors) * 512, reads, readMillis}, nil
		}
	}
	return Counters{}, fmt.Errorf("/proc/diskstats has no line for %s", device)
}

func (c Counters) minus(d Counters) Counters {
	return Counters{c.Operations - d.Operations, c.Bytes - d.Bytes, c.Reads - d.Reads, c.ReadMillis - d.ReadMillis}
}

// await is the mean time of a read in seconds, 0 where there was none.
func (c Counters) await() float64 {
	if c.Reads == 0 {
		return 0
	}
	return float64(c.ReadMillis) / 1000 / float64(c.Reads)
}

// Device holds a disk in the report against its counters. Both were read at the edges of the window, but not at once: the
// counters were read before and after the monitor's own reading, so they tell what was done at least and at most. An
// error is what lies beyond these two.
type Device struct {
	Name       string  `json:"name"`
	Operations uint64  `json:"operations"` // in the report, reads and writes
	Bytes      uint64  `json:"bytes"`      // the same
	Await      float64 `json:"await_s"`    // of reads, in the report

	Least Counters `json:"least"` // done between the edges
	Most  Counters `json:"most"`

	OperationsError uint64  `json:"operations_error"`
	BytesError      uint64  `json:"bytes_error"`
	AwaitError      float64 `json:"await_error"` // relative
}

// compare looks the disk up in a report. One that did nothing is in none.
func (d *Device) compare(r *window.Report) {
	d.Operations, d.Bytes, d.Await = 0, 0, 0
	for i := range r.Disks {
		use := &r.Disks[i]
		if use.Name != d.Name {
			continue
		}
		d.Operations, d.Bytes = use.ReadOperations+use.WriteOperations, use.ReadBytes+use.WriteBytes
		if use.ReadOperations > 0 {
			d.Await = use.ReadTime.Seconds() / float64(use.ReadOperations)
		}
	}
	d.OperationsError = beyond(d.Operations, d.Least.Operations, d.Most.Operations)
	d.BytesError = beyond(d.Bytes, d.Least.Bytes, d.Most.Bytes)
	low, high := d.Least.await(), d.Most.await()
	low, high = min(low, high), max(low, high)
	d.AwaitError = 0
	if off := max(low-d.Await, d.Await-high); off > 0 && high > 0 {
		d.AwaitError = math.Round(off/high*1e6) / 1e6
	}
}

func beyond(v, low, high uint64) uint64 {
	switch {
	case v < low:
		return low - v
	case v > high:
		return v - high
	}
	return 0
}
