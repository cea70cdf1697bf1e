package check

import (
	"context"
	"fmt"
)

// scheduler checks whether the changes of state of a job's threads can be read.
func (m *machine) scheduler(context.Context) []Finding {
	if m.Schedule == nil {
		return nil
	}
	f := Finding{Area: Scheduler, What: "threads", State: Seen, Details: map[string]any{"evidence": "schedule"},
		Message: "Every change of state of a job's threads can be read: the ledger is measured."}
	if err := m.Schedule(m.Root); err != nil {
		f.State = Limited
		if m.Switches != nil && m.Switches() == nil {
			f.Details["evidence"] = "switches"
			f.Message = fmt.Sprintf("run sees when your threads run, and samples what they wait for; for more: %v.", err)
			return []Finding{f}
		}
		f.Details["evidence"] = m.otherEvidence()
		// The error says what is needed. No command line follows: one that gives a user these rights would give more.
		f.Message = fmt.Sprintf("The ledger is estimated, not measured: %v.", err)
	}
	return []Finding{f}
}

// otherEvidence is what ledgers are made from without the scheduler.
func (m *machine) otherEvidence() string {
	if _, err := readStart(m.path("proc/pressure/io")); err != nil {
		return "sampled"
	}
	return "pressure"
}
