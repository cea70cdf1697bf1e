package history

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// timed is a reading of one disk with so many reads of 2 ms.
func timed(at time.Duration, reads uint64) *sample.Sample {
	h := &sample.LatencyHistogram{Sum: time.Duration(reads) * 2 * time.Millisecond,
		First: sample.LatencyBucket(2 * time.Millisecond), Counts: []uint64{reads}}
	return &sample.Sample{At: sample.Stamp{Mono: at}, Latencies: []sample.Latency{
		{Disk: "vda", Operation: sample.ReadOperation, Began: sample.Stamp{Mono: time.Second}, LatencyHistogram: h},
		{Disk: "vda", Operation: sample.ReadOperation, Job: "train", LatencyHistogram: &sample.LatencyHistogram{Zero: 1}},
		{Disk: "vda", Operation: sample.FlushOperation, LatencyHistogram: &sample.LatencyHistogram{Zero: 1}},
	}}
}

func edgeOf(h *History, s *sample.Sample) *Edge {
	e := h.NewEdge()
	h.Observe(e, s)
	return e
}

func TestLatencyBetweenEdges(t *testing.T) {
	h, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	start := Point{At: 10 * time.Second, Edge: edgeOf(h, timed(10*time.Second, 5))}
	end := Point{At: 11 * time.Second, Edge: edgeOf(h, timed(11*time.Second, 12)).Clone()}
	got, exact := h.Latency("vda", sample.ReadOperation, start, end)
	if got.Count() != 7 || !exact || got.Sum != 14*time.Millisecond {
		t.Errorf("got %+v, exact %v; want 7 reads, exact", got, exact)
	}
	if got, _ := h.Latency("vda", sample.WriteOperation, start, end); got != nil {
		t.Errorf("got %+v writes, want none", got)
	}
	before := Point{At: 500 * time.Millisecond, Edge: start.Edge} // nothing was counted then
	if got, _ := h.Latency("vda", sample.ReadOperation, before, end); got != nil {
		t.Errorf("got %+v of a time before the first count, want nothing", got)
	}
	if got, _ := h.Latency("vda", sample.ReadOperation, end, start); got != nil {
		t.Errorf("got %+v of a histogram that began again, want nothing", got)
	}
}

// A window without edges uses the rows next to its ends, if it is long enough.
func TestLatencyBetweenRows(t *testing.T) {
	h, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2000 {
		if err := h.Append(timed(time.Duration(2+i)*time.Second, uint64(10*i))); err != nil {
			t.Fatal(err)
		}
	}
	second := func(n int) Point { return Point{At: time.Duration(n) * time.Second} }
	if got, exact := h.Latency("vda", sample.ReadOperation, second(1900), second(1910)); got.Count() != 100 || exact {
		t.Errorf("got %d reads, exact %v; want 100, about", got.Count(), exact)
	}
	for name, p := range map[string][2]Point{
		"short": {second(1900), second(1902)}, "too old": {second(100), second(1900)}, "to come": {second(1900), second(2010)},
	} {
		if got, _ := h.Latency("vda", sample.ReadOperation, p[0], p[1]); got != nil {
			t.Errorf("%s: got %+v, want nothing", name, got)
		}
	}
	if n := len(h.latencies.rows); n > maxLatencyRows {
		t.Errorf("got %d rows, want at most %d", n, maxLatencyRows)
	}
}

// Rows take no more memory than their bound, whatever disks there are.
func TestLatencyRowsAreBounded(t *testing.T) {
	var r latencyRows
	for i := range 1000 {
		s := &sample.Sample{At: sample.Stamp{Mono: time.Duration(i) * time.Second}}
		for range 50 {
			counts := make([]uint64, 60)
			counts[i%60] = 1
			s.Latencies = append(s.Latencies, sample.Latency{Disk: "vda", Operation: sample.ReadOperation,
				LatencyHistogram: &sample.LatencyHistogram{Counts: counts}})
		}
		r.append(s)
		sum := 0
		for j := range r.rows {
			sum += r.rows[j].bytes
		}
		if r.bytes != sum || r.bytes > maxLatencyBytes || len(r.rows) == 0 {
			t.Fatalf("%d rows take %d bytes, and %d are noted; want at most %d", len(r.rows), sum, r.bytes, maxLatencyBytes)
		}
	}
	if cap(r.rows) > 4*maxLatencyRows {
		t.Errorf("room for %d rows, want about %d", cap(r.rows), maxLatencyRows)
	}
}
