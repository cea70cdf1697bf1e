package check

import (
	"context"
	"runtime"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cpu"
)

// cores reads the CPU time of each core.
func (m *machine) cores(context.Context) []Finding {
	source := cpu.New(m.Root)
	var s sample.Sample
	err := source.Read(&s)
	f := Finding{Area: CPU, What: "cores", Details: map[string]any{"cores": len(s.Cores), "usable": runtime.NumCPU()}}
	count := output.Count(len(s.Cores), "core")
	switch {
	case len(s.Cores) == 0:
		return f.as(Missing, m.procFix(), "%s cannot be read (%s): the cores' utilization is unknown.",
			m.path("proc/stat"), reason(err))
	case m.isHost() && runtime.NumCPU() < len(s.Cores):
		return f.as(Seen, "", "%s can be read; this process may use %d of them.", count, runtime.NumCPU())
	}
	return f.as(Seen, "", "%s can be read.", count)
}
