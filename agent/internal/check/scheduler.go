package check

import (
	"context"
	"fmt"
	"strings"
)

// latency checks whether each operation of a disk can be timed.
func (m *machine) latency(context.Context) []Finding {
	if m.Latency == nil {
		return nil
	}
	f := Finding{Area: Disks, What: "latency", State: Seen,
		Message: "Each operation of a disk can be timed: percentiles are known, not only means."}
	lacks, err := m.Latency(m.Root)
	return f.traced(lacks, err, "Only the mean time of a disk's operations is known: %v.")
}

// scheduler checks whether the changes of state of a job's threads can be read.
func (m *machine) scheduler(context.Context) []Finding {
	if m.Schedule == nil {
		return nil
	}
	f := Finding{Area: Scheduler, What: "threads", State: Seen, Details: map[string]any{"evidence": "schedule"},
		Message: "Every change of state of a job's threads can be read."}
	lacks, err := m.Schedule(m.Root)
	if err != nil {
		f.Details["evidence"] = "sampled"
	}
	return f.traced(lacks, err, "A job's threads are looked at at random moments; for every change of their state: %v.")
}

// traced completes the finding for what the kernel is asked with programs: why it refuses them, or what is not known as
// it refuses a part of them.
func (f *Finding) traced(lacks []string, err error, otherwise string) []Finding {
	switch {
	case err != nil:
		f.State = Limited
		// The error says what is needed. No command line follows: one that gives a user these rights would give more.
		f.Message = fmt.Sprintf(otherwise, err)
	case len(lacks) > 0:
		if f.Details == nil {
			f.Details = map[string]any{}
		}
		f.State, f.Details["lacks"] = Limited, lacks
		f.Message += " This kernel refuses a part, so that it is not known: " + strings.Join(lacks, "; ") + "."
	}
	return []Finding{*f}
}
