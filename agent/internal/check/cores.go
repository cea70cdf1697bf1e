package check

import (
	"context"
	"fmt"
	"runtime"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cpu"
)

// cores reads the CPU time of each core.
func (m *machine) cores(context.Context) []Finding {
	source := cpu.New(m.Root)
	defer source.Close()
	var s sample.Sample
	err := source.Read(&s)
	f := Finding{Area: CPU, What: "cores", State: Seen, Details: map[string]any{"cores": len(s.Cores),
		"usable": runtime.NumCPU()}}
	switch {
	case len(s.Cores) == 0:
		f.State = Missing
		f.Message = fmt.Sprintf("%s cannot be read (%s): the cores' utilization is unknown.", m.path("proc/stat"),
			reason(err))
		f.Fix = m.procFix()
	case m.isHost() && runtime.NumCPU() < len(s.Cores):
		f.Message = fmt.Sprintf("%s can be read; this process may use %d of them.", output.Count(len(s.Cores), "core"),
			runtime.NumCPU())
	default:
		f.Message = output.Count(len(s.Cores), "core") + " can be read."
	}
	return []Finding{f}
}
