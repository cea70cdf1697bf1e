package history

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// candidate is a process that reads 1 MiB a second since began, as a candidate or as a job.
func candidate(at, began time.Duration, isJob bool) *sample.Sample {
	spent := at - began
	j := sample.Job{
		ID: "j", Began: began, CPUTime: spent / 4, SystemTime: spent / 8, ReadBytes: uint64(spent.Seconds() * (1 << 20)),
		ReadChars: uint64(spent.Seconds() * (1 << 20)), HasIO: true, Processes: 1,
	}
	s := &sample.Sample{At: sample.Stamp{Mono: at}}
	if isJob {
		s.Jobs = []sample.Job{j}
	} else {
		s.Candidates = []sample.Job{j}
	}
	return s
}

// A job that was a candidate has its whole past: exact between readings, and bounded before the first one.
func TestPast(t *testing.T) {
	const began, first, followed, end = time.Second, 1900 * time.Millisecond, 20 * time.Minute, 21 * time.Minute
	h := newHistory(t)
	empty := h.Bytes()
	for now := first; now <= end; now += tick {
		add(t, h, candidate(now, began, now >= followed))
		if now < followed && h.Bytes() != empty+pastBytes {
			t.Fatalf("at %v: got %d bytes for a candidate, want %d", now, h.Bytes()-empty, pastBytes)
		}
		if ids := h.IDs(JobCPUTime); now < followed && len(ids) != 0 {
			t.Fatalf("at %v: got the jobs %v, want none", now, ids)
		}
	}
	if len(h.pasts) != 0 {
		t.Errorf("got %d candidates in the end, want none", len(h.pasts))
	}
	zero, since, ok := h.Past("j")
	if !ok || zero != since || since > followed-9*time.Minute || since < followed-12*time.Minute {
		t.Errorf("got the past %v from %v on, %v, want one of ten minutes", zero, since, ok)
	}
	for _, c := range []struct {
		from, to time.Duration
	}{
		{followed - 8*time.Minute, end},
		{followed - 30*time.Second, followed + 5*time.Second},
		{followed - 30*time.Second, followed - 20*time.Second},
		{followed, end},
	} {
		d, ok := h.Between(Key{JobReadBytes, "j"}, at(c.from+tick/2), at(c.to+tick/2-tick))
		want := (c.to - c.from - tick).Seconds()
		if got := d.Value / (1 << 20); !ok || math.Abs(got-want) > 0.02 || d.Reset {
			t.Errorf("from %v to %v: got %+v, %v, want %v MiB", c.from, c.to, d, ok, want)
		}
		if low, high := d.Low/(1<<20), d.High/(1<<20); low > want || high < want {
			t.Errorf("from %v to %v: got bounds %v and %v, want them around %v MiB", c.from, c.to, low, high, want)
		}
	}
}

// Before its first reading a candidate is between 0 and what it had counted by then. Parts of ledgers are bounded by
// the time, too.
func TestBeforeTheFirstReading(t *testing.T) {
	h := newHistory(t)
	add(t, h, &sample.Sample{At: sample.Stamp{Mono: time.Second}, Jobs: []sample.Job{{ID: "other"}}})
	if err := h.AppendLedgers(time.Second, []LedgerTotals{{ID: "other"}}); err != nil {
		t.Fatal(err)
	}
	add(t, h, candidate(4*time.Second, 2*time.Second, false))
	add(t, h, candidate(5*time.Second, 2*time.Second, true))
	for _, now := range []time.Duration{4 * time.Second, 5 * time.Second} {
		if err := h.AppendLedgers(now, []LedgerTotals{{ID: "other"}}); err != nil {
			t.Fatal(err)
		}
	}
	rows := []LedgerRow{
		{4 * time.Second, LedgerTotals{ID: "j", Storage: 1800 * time.Millisecond, CPU: 100 * time.Millisecond}},
		{5 * time.Second, LedgerTotals{ID: "j", Storage: 2800 * time.Millisecond, CPU: 100 * time.Millisecond}},
	}
	if err := h.RecallLedger(2*time.Second, rows); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		series           Series
		from             time.Duration
		low, value, high float64
	}{
		{LedgerStorage, 2 * time.Second, 2.8, 2.8, 2.8},
		{LedgerStorage, time.Second, 2.8, 2.8, 2.8},
		{LedgerStorage, 3 * time.Second, 1.8, 1.9, 2}, // it waited for 0.8 s at least in the second before
		{LedgerCPU, 3 * time.Second, 0, 0.05, 0.1},
		{LedgerStorage, 4 * time.Second, 1, 1, 1},
		{LedgerBusy, 3 * time.Second, 0, 0, 0},
	} {
		d, ok := h.Between(Key{c.series, "j"}, at(c.from), at(5*time.Second))
		near := math.Abs(d.Low-c.low)+math.Abs(d.Value-c.value)+math.Abs(d.High-c.high) < 1e-6
		if !ok || !near || d.Reset {
			t.Errorf("%d from %v: got %+v, %v, want %v, %v, %v", c.series, c.from, d, ok, c.low, c.value, c.high)
		}
	}
	if d, ok := h.Between(Key{JobReadBytes, "j"}, at(3*time.Second), at(5*time.Second)); !ok ||
		d.Low != 1<<20 || d.Value != 2<<20 || d.High != 3<<20 {
		t.Errorf("bytes read: got %+v, %v, want 1, 2 and 3 MiB", d, ok)
	}
	totals := []LedgerTotals{{ID: "other"}, {ID: "j", Storage: 3 * time.Second}}
	if err := h.AppendLedgers(6*time.Second, totals); err != nil {
		t.Fatal(err)
	}
	d, ok := h.Between(Key{LedgerStorage, "j"}, at(5*time.Second), at(6*time.Second))
	if !ok || math.Abs(d.Value-0.2) > 1e-9 {
		t.Errorf("after it: got %+v, %v, want 0.2 s", d, ok)
	}
}

// Candidates are kept only while there is room, and as long as they are read.
func TestCandidatesAreBounded(t *testing.T) {
	h, err := New(Config{MaxBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s := &sample.Sample{At: sample.Stamp{Mono: tick}}
	for k := range 200 {
		s.Candidates = append(s.Candidates, sample.Job{ID: strconv.Itoa(k)})
	}
	add(t, h, s)
	if n := len(h.pasts); n == 0 || n == 200 || h.Bytes() > 2<<20 {
		t.Fatalf("got %d candidates in %d bytes, want some, in %d bytes at most", n, h.Bytes(), 2<<20)
	}
	add(t, h, &sample.Sample{At: sample.Stamp{Mono: 2 * tick}, Jobs: []sample.Job{{ID: "x"}}})
	if len(h.pasts) != 0 {
		t.Errorf("got %d candidates after a reading without any, want none", len(h.pasts))
	}
}
