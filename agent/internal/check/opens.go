package check

import (
	"context"
	"fmt"
)

// opens checks whether the kernel reports which files jobs open.
func (m *machine) opens(context.Context) []Finding {
	if m.Opens == nil {
		return nil
	}
	f := Finding{Area: Scheduler, What: "opens", State: Seen,
		Message: "The kernel reports which files of models jobs open: short loads are found, too."}
	if err := m.Opens(m.Root); err != nil {
		f.State = Limited
		// As for latency, no command line follows.
		f.Message = fmt.Sprintf("Short model loads that no program announces may be missed: %v.", err)
	}
	return []Finding{f}
}
