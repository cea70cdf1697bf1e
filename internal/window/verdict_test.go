package window

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		name string
		Shares
		want Verdict
	}{
		{"busy", Shares{Busy: 0.95, Storage: 0.05}, GPUBound},
		{"busy, with a small stall", Shares{Busy: 0.9, Storage: 0.1}, GPUBound},
		{"storage", Shares{Busy: 0.4, Storage: 0.5, CPU: 0.1}, StorageBound},
		{"storage at its threshold", Shares{Busy: 0.84, Storage: 0.15, CPU: 0.01}, StorageBound},
		{"cpu", Shares{Busy: 0.4, Storage: 0.1, CPU: 0.5}, CPUBound},
		{"both", Shares{Busy: 0.3, Storage: 0.3, CPU: 0.4}, Mixed},
		{"idle without an explanation", Shares{Busy: 0.1, Storage: 0.2, Other: 0.7}, Unknown},
		{"storage, and much without an explanation", Shares{Busy: 0, Storage: 0.45, Other: 0.55}, StorageBound},
		{"network", Shares{Busy: 0.4, Storage: 0.1, CPU: 0.1, Other: 0.4, Network: 0.3}, NetworkBound},
		{"network at its threshold", Shares{Busy: 0.84, CPU: 0.01, Other: 0.15, Network: 0.15}, NetworkBound},
		{"network alone", Shares{Other: 1, Network: 1}, NetworkBound},
		{"network, and much that is unknown", Shares{Other: 0.9, Network: 0.2, Busy: 0.1}, Unknown},
		{"network and CPU", Shares{Busy: 0.2, CPU: 0.3, Other: 0.5, Network: 0.4}, Mixed},
		{"network and storage", Shares{Busy: 0.2, Storage: 0.3, Other: 0.5, Network: 0.3}, Mixed},
		{"storage, and some network", Shares{Busy: 0.2, Storage: 0.6, Other: 0.2, Network: 0.2}, StorageBound},
		{"a small wait for the network", Shares{Busy: 0.8, Other: 0.2, Network: 0.1}, Unknown},
		{"nothing large", Shares{Busy: 0.85, Storage: 0.05, CPU: 0.05, Other: 0.05}, Unknown},
		{"an idle machine", Shares{Other: 1}, Unknown},
	} {
		if got := c.Verdict(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Where other is the limit, the verdict says so if half of it has a known reason.
func TestWaitBound(t *testing.T) {
	for what, c := range map[string]struct {
		reason history.Series
		waited time.Duration
		want   Verdict
	}{
		"a lock":            {history.OtherLock, 9 * s, WaitBound},
		"a timer, half":     {history.OtherTimer, 5 * s, WaitBound},
		"a timer, less":     {history.OtherTimer, 4 * s, Unknown},
		"a child":           {history.OtherChild, 9 * s, WaitBound},
		"another machine":   {history.OtherNetwork, 9 * s, WaitBound},
		"the GPU's driver":  {history.OtherGPU, 9 * s, WaitBound},
		"a stopped program": {history.OtherStop, 9 * s, WaitBound},
		"several files":     {history.OtherEvent, 9 * s, Unknown},
		"no reason at all":  {history.OtherLock, 0, Unknown},
	} {
		scheduled := history.Scheduled{Time: 10 * s}
		scheduled.Other[c.reason-history.OtherGPU] = c.waited
		if got := ledgerOf(t, scheduled, nil).Verdict; got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
}
