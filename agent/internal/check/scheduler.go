package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/stallspan/stallspan/internal/source/bpf"
)

// latency checks whether each operation of a disk can be timed.
func (m *machine) latency(context.Context) []Finding {
	if m.Refusals == nil {
		return nil
	}
	f := Finding{Area: Disks, What: "latency", State: Seen,
		Message: "Each operation of a disk can be timed: percentiles are known, not only means."}
	refused := m.Refusals(m.Root)
	return f.traced(refused.Only(bpf.DiskJobs), refused.Of(bpf.Disks),
		"Only the mean time of a disk's operations is known: %v.")
}

// scheduler checks whether the changes of state of a job's threads can be read.
func (m *machine) scheduler(context.Context) []Finding {
	if m.Refusals == nil {
		return nil
	}
	f := Finding{Area: Scheduler, What: "threads", State: Seen, Details: map[string]any{"evidence": "schedule"},
		Message: "Every change of state of a job's threads can be read."}
	refused := m.Refusals(m.Root)
	err := refused.Of(bpf.Threads)
	if err != nil {
		f.Details["evidence"] = "sampled"
	}
	return f.traced(refused.Without(bpf.Disks, bpf.DiskJobs), err,
		"A job's threads are looked at at random moments; for every change of their state: %v.")
}

// traced completes the finding for what the kernel is asked with programs: why it refuses them, or which parts of them
// it refuses.
func (f *Finding) traced(refused bpf.Refusals, err error, otherwise string) []Finding {
	switch {
	case err != nil:
		f.State = Limited
		// The error says what is needed. No command line follows: one that gives a user these rights would give more.
		f.Message = fmt.Sprintf(otherwise, err)
	case len(refused) > 0:
		if f.Details == nil {
			f.Details = map[string]any{}
		}
		var lacks []string
		for _, part := range refused {
			lacks = append(lacks, part.What)
		}
		f.State, f.Details["lacks"] = Limited, lacks
		f.Message += " A part is left out: " + strings.Join(refused.Causes(), ", ") + "."
	}
	return []Finding{*f}
}
