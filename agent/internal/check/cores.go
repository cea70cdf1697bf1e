package check

import (
	"context"
	"fmt"
	"runtime"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cpu"
)

// cores reads what each core has done.
func (m *machine) cores(context.Context) []Finding {
	source := cpu.New(m.Root)
	defer source.Close()
	var s sample.Sample
	err := source.Read(&s)
	f := Finding{Area: CPU, What: "cores", State: Seen, Details: map[string]any{"cores": len(s.Cores), "usable": runtime.NumCPU()}}
	switch {
	case len(s.Cores) == 0:
		f.State = Missing
		f.Says = fmt.Sprintf("%s cannot be read (%s): how busy the cores are is not known.", m.path("proc/stat"), reason(err))
		f.Fix = m.procFix()
	case m.isHost() && runtime.NumCPU() < len(s.Cores):
		f.Says = fmt.Sprintf("%s can be watched; this process may use %d of them.", number(len(s.Cores), "core", "cores"), runtime.NumCPU())
	default:
		f.Says = number(len(s.Cores), "core", "cores") + " can be watched."
	}
	return []Finding{f}
}
