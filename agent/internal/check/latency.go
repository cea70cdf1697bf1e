package check

import (
	"context"
	"fmt"
)

// latency checks whether each operation of a disk can be timed.
func (m *machine) latency(context.Context) []Finding {
	if m.Latency == nil {
		return nil
	}
	f := Finding{Area: Disks, What: "latency", State: Seen,
		Message: "Each operation of a disk can be timed: percentiles are known, not only means."}
	lacks, err := m.Latency(m.Root)
	switch {
	case err != nil:
		f.State = Limited
		// The error says what is needed. No command line follows: one that gives a user these rights would give more.
		f.Message = fmt.Sprintf("Only the mean time of a disk's operations is known: %v.", err)
	case len(lacks) > 0:
		f.lacks(lacks)
	}
	return []Finding{f}
}
