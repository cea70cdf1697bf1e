package check

import (
	"context"
	"fmt"
	"strings"
)

// scheduler checks whether the changes of state of a job's threads can be read.
func (m *machine) scheduler(context.Context) []Finding {
	if m.Schedule == nil {
		return nil
	}
	f := Finding{Area: Scheduler, What: "threads", State: Seen, Details: map[string]any{"evidence": "schedule"},
		Message: "Every change of state of a job's threads can be read."}
	lacks, err := m.Schedule(m.Root)
	switch {
	case err != nil:
		f.State, f.Details["evidence"] = Limited, "sampled"
		// The error says what is needed. No command line follows: one that gives a user these rights would give more.
		f.Message = fmt.Sprintf("A job's threads are looked at at random moments; for every change of their state: %v.", err)
	case len(lacks) > 0:
		f.lacks(lacks)
	}
	return []Finding{f}
}

// lacks adds what is not known, as the kernel refuses a part of the programs.
func (f *Finding) lacks(list []string) {
	if f.Details == nil {
		f.Details = map[string]any{}
	}
	f.State, f.Details["lacks"] = Limited, list
	f.Message += " This kernel refuses a part, so that it is not known: " + strings.Join(list, "; ") + "."
}
