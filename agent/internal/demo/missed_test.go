package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// TestMissed: a measured speed-up outside of the predicted range is said to be.
func TestMissed(t *testing.T) {
	epoch := func(cpu, ready time.Duration) *window.Report {
		r := &window.Report{Ledger: window.Ledger{CPU: cpu, Ready: ready}}
		r.End.Mono, r.SpeedupLow, r.SpeedupHigh = 10*time.Second, 1.3, 1.6
		return r
	}
	for name, c := range map[string]struct {
		measured   float64
		cold, warm *window.Report
		want       string // "" if it is within
	}{
		"within":          {1.5, epoch(0, 0), epoch(0, 0), ""},
		"within a digit":  {1.64, epoch(0, 0), epoch(0, 0), ""},
		"above":           {1.7, epoch(0, 0), epoch(0, 0), "outside"},
		"below":           {1.1, epoch(0, 0), epoch(0, 0), "outside"},
		"a busy machine":  {1.7, epoch(2*time.Second, time.Second), epoch(time.Second, 0), "other programs took the cores"},
		"slower work":     {1.1, epoch(time.Second, 0), epoch(2*time.Second, 0), "its other work was slower"},
		"faster work":     {1.8, epoch(2*time.Second, 0), epoch(time.Second, 0), "its other work was faster"},
		"no range at all": {9, &window.Report{}, epoch(0, 0), ""},
	} {
		got := missed(c.cold, c.warm, c.measured)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
