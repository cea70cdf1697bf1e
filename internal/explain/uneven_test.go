package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// uneven2 is a window of ten seconds with two GPUs that were busy for these times.
func uneven2(first, second time.Duration) *window.Report {
	r := &window.Report{Ledger: window.Ledger{Split: true}, Facts: window.Facts{GPUIDs: []string{"GPU-a", "GPU-b"}}, Judgement: window.Judgement{Verdict: window.GPUBound}}
	r.End.Mono = 10 * time.Second
	r.Ledgers = []window.GPULedger{
		{ID: "GPU-a", Index: 3, Busy: first, Other: r.End.Mono - first},
		{ID: "GPU-b", Index: -1, Busy: second, Other: r.End.Mono - second},
	}
	r.Busy = first + second
	r.Other = r.GPUTime() - r.Busy
	return r
}

// The GPU that holds the others up has a name.
func TestUnevenGPUs(t *testing.T) {
	r := uneven2(2*time.Second, 9500*time.Millisecond)
	if got, want := Finding(r), "(GPU 3 20 %, GPU-b 95 %)"; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
	rows := GPURows(r)
	if len(rows) != 2 || rows[0].Label != "  GPU 3" || rows[0].Busy != "20 %" || rows[1].Other != "5 %" {
		t.Errorf("got %+v, want a row for each GPU", rows)
	}
	out := NewReport(r)
	if l := out.GPU.Ledgers; len(l) != 2 || *l[0].Index != 3 || l[1].Index != nil || l[1].Busy != 9.5 {
		t.Errorf("got the ledgers %+v, want those of both GPUs", l)
	}
}

func TestEvenGPUs(t *testing.T) {
	r := uneven2(5*time.Second, 6*time.Second)
	if got := Finding(r); strings.Contains(got, "(") || len(GPURows(r)) != 0 {
		t.Errorf("got %q and %d rows, want no single GPU", got, len(GPURows(r)))
	}
}
