package history

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Bounds of the rows of latencies. One takes 50 to 500 bytes for each disk that works.
const (
	maxLatencyRows  = 600     // ten minutes
	maxLatencyBytes = 1 << 20 // of all rows, about

	// latencySlack is how far a row may be from the end of a window without edges. There is one a second.
	latencySlack = 1500 * time.Millisecond
	// minLatencyTime is the shortest window without edges whose latencies are known, about.
	minLatencyTime = 5 * time.Second
)

// latency is what one disk did until a reading.
type latency struct {
	disk      string
	operation sample.Operation
	began     time.Duration
	histogram *sample.LatencyHistogram // immutable
}

// latencyRow is one reading, of reads and writes of all programs.
type latencyRow struct {
	at    time.Duration
	list  []latency
	bytes int // that this row has and the one before it has not
}

// latencyRows are the newest rows, for windows without edges.
type latencyRows struct {
	rows  []latencyRow
	bytes int
}

func latenciesOf(s *sample.Sample) (list []latency) {
	for i := range s.Latencies {
		l := &s.Latencies[i]
		if l.Job == "" && (l.Operation == sample.ReadOperation || l.Operation == sample.WriteOperation) &&
			l.Valid() {
			list = append(list, latency{l.Disk, l.Operation, l.Began.Mono, l.LatencyHistogram})
		}
	}
	return list
}

func find(list []latency, disk string, operation sample.Operation) *latency {
	for i := range list {
		if list[i].disk == disk && list[i].operation == operation {
			return &list[i]
		}
	}
	return nil
}

// append adds a row, and drops old ones.
func (r *latencyRows) append(s *sample.Sample) {
	row := latencyRow{at: s.At.Mono, list: latenciesOf(s)}
	var before []latency
	if n := len(r.rows); n > 0 {
		if row.at <= r.rows[n-1].at {
			return
		}
		before = r.rows[n-1].list
	}
	row.bytes = 64
	for i := range row.list {
		l := &row.list[i]
		row.bytes += 56
		if old := find(before, l.disk, l.operation); old == nil || old.histogram != l.histogram {
			row.bytes += 64 + 8*len(l.histogram.Counts)
		}
	}
	r.rows, r.bytes = append(r.rows, row), r.bytes+row.bytes
	drop := 0
	for len(r.rows)-drop > maxLatencyRows || r.bytes > maxLatencyBytes && drop < len(r.rows)-1 {
		r.bytes -= r.rows[drop].bytes
		drop++
	}
	clear(r.rows[:drop])
	r.rows = r.rows[drop:]
}

// nearest returns the row nearest to a time; nil if none is near.
func (r *latencyRows) nearest(at time.Duration) []latency {
	var best *latencyRow
	for i := len(r.rows) - 1; i >= 0; i-- {
		row := &r.rows[i]
		if best == nil || (row.at-at).Abs() < (best.at-at).Abs() {
			best = row
		}
		if row.at < at {
			break
		}
	}
	if best == nil || (best.at-at).Abs() > latencySlack {
		return nil
	}
	return best.list
}

// Latency returns how long the operations of one kind took on a disk between two points, for all programs; nil if that
// was not counted for all of the time. It is exact with an Edge at both ends. Else it is from the readings next to the
// ends, in a window of five seconds or more.
func (h *History) Latency(
	disk string, o sample.Operation, start, end Point,
) (grown *sample.LatencyHistogram, exact bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	from, sureFrom := h.latencies.at(start)
	to, sureTo := h.latencies.at(end)
	exact = sureFrom && sureTo
	last := find(to, disk, o)
	if last == nil || len(from) == 0 || last.began > start.At || !exact && end.At-start.At < minLatencyTime {
		return nil, false
	}
	first := find(from, disk, o)
	if first == nil { // nothing until then
		return last.histogram, exact
	}
	if first.began != last.began {
		return nil, false
	}
	return last.histogram.Since(first.histogram), exact
}

// at returns the latencies at a point, and whether they were read for it.
func (r *latencyRows) at(p Point) (list []latency, exact bool) {
	if p.Edge != nil && len(p.Edge.latencies) > 0 {
		return p.Edge.latencies, true
	}
	if p.Next != nil && p.Next.Edge != nil && len(p.Next.Edge.latencies) > 0 && (p.Next.At-p.At).Abs() <= latencySlack {
		return p.Next.Edge.latencies, false
	}
	return r.nearest(p.At), false
}
