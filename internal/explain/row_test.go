package explain

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// TestUnknownStall: a report whose finding is that the storage stall is not known gives no numbers for it.
func TestUnknownStall(t *testing.T) {
	for what, gpus := range map[string][]string{"a GPU": {"gpu0"}, "no GPU": nil} {
		r := &window.Report{Facts: window.Facts{Scope: window.Process, GPUIDs: gpus}}
		divide(r, window.Shares{CPU: 1})
		if got := NewReport(r); got.Stall == nil {
			t.Fatalf("%s: no stall in a report that lacks nothing", what)
		}
		r.Missing = []window.Missing{{Reason: window.HiddenReads}}
		row, report := NewRow(r), NewReport(r)
		if row.Storage != "-" || gpus != nil && row.CPU != "-" || row.Other != "-" {
			t.Errorf("%s: got the cells %+v, want no storage, CPU and other", what, row)
		}
		if gpus == nil && row.CPU != "100 %" || gpus != nil && row.Busy != "0 %" {
			t.Errorf("%s: got the cells %+v, want what worked", what, row)
		}
		if report.Stall != nil || report.Duration != (10*time.Second).Seconds() {
			t.Errorf("%s: got the stall %+v, want none", what, report.Stall)
		}
	}
}
