package window

import (
	"testing"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

// TestBusiestGPUBounds: GPUs that work in step are no faster than the busiest one allows, whatever the evidence. Of two,
// one is busy 20 % of 10 s and waits for storage for the rest, and the other is busy 94 %.
func TestBusiestGPUBounds(t *testing.T) {
	for name, scheduled := range map[string]bool{"pressure": false, "schedule": true} {
		h := newHistory(t)
		for i := range 3 {
			at := of(float64(5 * i))
			add(t, h, &sample.Sample{At: sample.Stamp{Mono: at}, GPUs: []sample.GPU{
				{ID: "gpu0", Busy: at / 5}, {ID: "gpu1", Busy: at * 94 / 100},
			}})
			parts := []history.LedgerTotals{
				{ID: ledger.ID("job", "gpu0"), Busy: at / 5, Storage: at * 4 / 5, Gain: at * 4 / 5, HasGain: true},
				{ID: ledger.ID("job", "gpu1"), Busy: at * 94 / 100, Storage: at * 6 / 100, Gain: at * 6 / 100, HasGain: true},
			}
			for i := range parts {
				if scheduled {
					parts[i].Scheduled = &history.Scheduled{Time: at}
				}
			}
			if err := h.AppendLedgers(at, parts); err != nil {
				t.Fatal(err)
			}
		}
		w := &Window{Kind: Epoch, GPUs: []string{"gpu0", "gpu1"}, End: sample.Stamp{Mono: 10 * s}}
		r := Make(h, w, Machine{Target: ledger.Target{Job: "job", Own: true}, GPUs: w.GPUs, Pressure: true, Scope: Process})
		if want := 1 / 0.94; r.Speedup < 1 || r.Speedup > want+1e-6 || r.SpeedupHigh > want/edgeDoubt+1e-6 {
			t.Errorf("%s: got %.3f times faster, up to %.3f; want at most %.3f", name, r.Speedup, r.SpeedupHigh, want)
		}
		if p := r.Pacer(); p == nil || p.ID != "gpu1" {
			t.Errorf("%s: got %+v as the one that sets the pace, want gpu1", name, p)
		}
		if scheduled && r.WhatIf.NoStorage > 1/0.94+1e-6 {
			t.Errorf("got %.3f times faster by the replay", r.WhatIf.NoStorage)
		}
	}
}
