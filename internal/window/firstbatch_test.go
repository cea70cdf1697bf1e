package window

import (
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

func TestBeforeWork(t *testing.T) {
	work := func(percent ...int) (all []history.Step) {
		for i, p := range percent {
			at := time.Duration(i) * tick
			all = append(all, history.Step{Start: at, End: at + tick, Grown: float64(p) / 1000})
		}
		return all
	}
	for name, test := range map[string]struct {
		percent []int
		want    time.Duration
	}{
		"6.2 s of 8.3 s":        {slices.Concat(repeat(62, 0), repeat(21, 95)), 6200 * time.Millisecond},
		"some work before":      {slices.Concat(repeat(40, 10), repeat(60, 90)), 4 * time.Second},
		"too much work before":  {slices.Concat(repeat(40, 30), repeat(60, 90)), 0},
		"a small part":          {slices.Concat(repeat(15, 0), repeat(85, 90)), 0},
		"a short time":          {slices.Concat(repeat(9, 0), repeat(9, 90)), 0},
		"work from the start":   {repeat(100, 90), 0},
		"waiting in the middle": {slices.Concat(repeat(30, 90), repeat(40, 0), repeat(30, 90)), 0},
		"waiting at the end":    {slices.Concat(repeat(40, 90), repeat(60, 0)), 0},
		"a wait in each batch":  {repeat(20, 90, 0, 0, 0, 0), 0},
		"an end that works":     {slices.Concat(repeat(83, 10), repeat(2, 95)), 0},
		"an end that prints":    {slices.Concat(repeat(14, 0), repeat(1, 90)), 0},
		"a work of one tick":    {slices.Concat(repeat(14, 0), repeat(1, 100)), 1400 * time.Millisecond},
		"no work":               {repeat(100, 0), 0},
		"little work after":     {slices.Concat(repeat(62, 0), repeat(21, 6)), 6200 * time.Millisecond},
		"hardly any work after": {slices.Concat(repeat(62, 0), repeat(21, 4)), 0},
		"nothing":               {nil, 0},
	} {
		if got := beforeWork(work(test.percent...)); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// TestFirstBatch: an epoch whose work begins late says so, with the processes that started meanwhile.
func TestFirstBatch(t *testing.T) {
	const s = time.Second
	h := newHistory(t)
	id := ledger.ID("job", "")
	var cpu, storage time.Duration
	for at := time.Duration(0); at <= 30*s; at += tick {
		if at > 0 {
			if in := (at - 1) % (10 * s); in < 4*s { // of each epoch of 10 s, 4 s are before its first batch
				storage += tick
			} else {
				cpu += tick
			}
		}
		add(t, h, &sample.Sample{At: sample.Stamp{Mono: at}, Jobs: []sample.Job{{ID: "job", HasIO: true}}})
		of := history.LedgerTotals{ID: id, CPU: cpu, Storage: storage}
		if err := h.AppendLedgers(at, []history.LedgerTotals{of}); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		start   time.Duration
		kind    Kind
		first   bool
		started []time.Duration
		want    bool
		workers int
	}{
		"workers in each epoch":      {10 * s, Epoch, false, []time.Duration{1 * s, 1 * s, 11 * s, 11 * s}, true, 2},
		"seen just before":           {10 * s, Epoch, false, []time.Duration{1 * s, 9*s + s/2}, true, 1},
		"workers of the first epoch": {0, Epoch, true, []time.Duration{1 * s, 1 * s}, true, 0},
		"workers that stay":          {10 * s, Epoch, false, []time.Duration{1 * s, 1 * s}, true, 0},
		"one that starts later":      {10 * s, Epoch, false, []time.Duration{1 * s, 15 * s}, true, 0},
		"a load":                     {10 * s, ModelLoad, false, nil, false, 0},
	} {
		w := Window{Kind: test.kind, Job: "job", First: test.first, Start: sample.Stamp{Mono: test.start},
			End: sample.Stamp{Mono: test.start + 10*s}}
		m := Machine{Target: ledger.Target{Job: "job"}, Scope: Process, Started: test.started}
		f, found := Make(h, &w, m).Finding(FirstBatchLate).(FirstBatch)
		if found != test.want || f.Workers != test.workers {
			t.Errorf("%s: got %+v, %v, want %d workers, %v", name, f, found, test.workers, test.want)
		}
		if found && ((f.Took-4*s).Abs() > tick || (f.Storage-4*s).Abs() > tick) {
			t.Errorf("%s: got %v, %v of it waiting for storage, want 4 s each", name, f.Took, f.Storage)
		}
	}
}
