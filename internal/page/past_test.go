package page

import (
	"math"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/store"
)

// A ledger is known where the store has it. A machine without a GPU was never busy.
func TestLedgerOfThePast(t *testing.T) {
	start := time.Unix(1_795_435_200, 0)
	p := NewPast(start, 10*time.Second, 2, 1, nil)
	p.Add(&store.Item{Rows: &store.Rows{
		Columns: []store.Column{{Of: store.Machine, Quantity: store.Storage, Step: 1}}, Length: 10 * time.Second,
		Starts: []int64{start.Unix()}, Values: [][]float64{{0.5}},
	}})
	p.Add(&store.Item{Rows: &store.Rows{
		Columns: []store.Column{{Of: store.Job, ID: "job", Quantity: store.NoCore, Step: 1}}, Length: 10 * time.Second,
		Starts: []int64{start.Unix()}, Values: [][]float64{{0.25}},
	}})
	if got := p.rate(history.LedgerReady, ledger.ID("job", someGPU), 0); got != 0.25 {
		t.Errorf("got %v of the time without a core, want 0.25", got)
	}
	for s, want := range map[history.Series]float64{history.LedgerBusy: 0, history.LedgerStorage: 0.5} {
		if got := p.rate(s, ledger.ID("", ""), 0); got != want {
			t.Errorf("series %d: got %v, want %v", s, got, want)
		}
		if got := p.rate(s, ledger.ID("", ""), 1); !math.IsNaN(got) {
			t.Errorf("series %d where nothing is stored: got %v, want that it is not known", s, got)
		}
	}
}
