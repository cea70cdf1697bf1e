package window

import (
	"reflect"
	"testing"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

// TestFeatures: each feature of a candidate holds on one side of its edge, and gives its points. The window lasts 10 s
// and waits for 8 s.
func TestFeatures(t *testing.T) {
	s := &stack{view: &view{Window: &Window{End: sample.Stamp{Mono: 10 * s}}}, wait: 8}
	limit := &Limited{}
	for name, c := range map[string]struct {
		candidate
		want int
	}{
		"nothing":                              {candidate{}, 0},
		"the files' own":                       {candidate{home: true, took: 1.9}, 2},
		"the files' own, for a quarter":        {candidate{home: true, took: 2.1}, 4},
		"the files' own, for a half":           {candidate{home: true, took: 4.1}, 5},
		"another, for a quarter":               {candidate{took: 3.9}, 2},
		"another, for a half":                  {candidate{took: 4.1}, 3},
		"a limit for the wait":                 {candidate{limit: limit, took: 6.9}, 8},
		"a limit for less":                     {candidate{limit: limit, took: 6.7}, 0},
		"a limit on a slow device":             {candidate{limit: limit, took: 8.4, slow: true}, 0},
		"a limit for the window on a slow one": {candidate{limit: limit, took: 8.6, slow: true}, 8},
		"a limit that did not hold":            {candidate{limit: limit, took: 12.6}, 0},
	} {
		if got := s.rank([]candidate{c.candidate})[0].score; got != c.want {
			t.Errorf("%s: got %d points, want %d", name, got, c.want)
		}
	}
}

// TestRank: what counts most is first, and then what took longest.
func TestRank(t *testing.T) {
	s := &stack{view: &view{Window: &Window{End: sample.Stamp{Mono: 10 * s}}}, wait: 8}
	limit := &Limited{Limit: sample.Limit{Device: "sdd"}}
	all := s.rank([]candidate{
		{device: "sdb", took: 5}, {device: "sdc", took: 6}, {device: "sda", home: true, took: 3},
		{device: "sdd", limit: limit, took: 9}, {device: "sde", limit: limit, took: 10},
	})
	for i, want := range []string{"sde", "sdd", "sda", "sdc", "sdb"} {
		if all[i].device != want || all[i].score < enough {
			t.Errorf("place %d: got %s with %d points, want %s", i, all[i].device, all[i].score, want)
		}
	}
}

// TestStagesArePure: a stage gives the same for the same input, and does not change it.
func TestStagesArePure(t *testing.T) {
	h := newHistory(t)
	for i := range uint64(3) {
		at := of(float64(5 * i))
		add(t, h, &sample.Sample{At: sample.Stamp{Mono: at}, Disks: []sample.Disk{
			{Name: "sda", Leaf: true, ReadIOs: 100 * i, ReadBytes: i << 20, ReadTicks: at * 4 / 5, TimeInQueue: at * 4 / 5},
		}})
		add(t, h, &sample.Sample{At: sample.Stamp{Mono: at}, Jobs: []sample.Job{{ID: "job", HasIO: true, ReadBytes: i << 20}}})
		parts := []history.LedgerTotals{{ID: ledger.ID("job", ""), Storage: at * 4 / 5, CPU: at / 5, Gain: at * 4 / 5, HasGain: true}}
		if err := h.AppendLedgers(at, parts); err != nil {
			t.Fatal(err)
		}
	}
	w := &Window{Kind: Epoch, End: sample.Stamp{Mono: 10 * s}}
	v := &view{w, h, &Machine{Target: ledger.Target{Job: "job", Own: true}, Leaves: []string{"sda"}, Pressure: true,
		Scope: Process, Drives: []sample.Drive{drive("sda", sample.DriveFailing)}}}
	r := Make(h, w, *v.machine)
	if r.SlowDevice == nil || r.Verdict != StorageBound || len(r.Findings) != 1 {
		t.Fatalf("got %+v, %s, findings %v; want sda, storage_bound and its health", r.SlowDevice, r.Verdict, r.Findings)
	}
	for name, stage := range map[string]func(*Report) any{
		"facts":    func(*Report) any { return gather(v) },
		"ledger":   func(r *Report) any { return divide(v, r) },
		"device":   func(r *Report) any { return blame(v, r) },
		"verdict":  func(r *Report) any { return judge(v, r) },
		"findings": func(r *Report) any { return find(v, r) },
	} {
		if first, second := stage(r), stage(r); !reflect.DeepEqual(first, second) {
			t.Errorf("%s: got %+v and then %+v", name, first, second)
		}
		if fresh := Make(h, w, *v.machine); !reflect.DeepEqual(r, fresh) {
			t.Errorf("%s: the report became %+v, want %+v", name, r, fresh)
		}
	}
}
