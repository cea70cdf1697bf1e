package receiver

import (
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/filter"

	"github.com/stallspan/stallspan/internal/sample"
)

// FilterConfig chooses devices for the metrics. Without Include there are all of them; what Exclude matches is left out
// in any case. Windows are judged by what the whole machine did.
type FilterConfig struct {
	Include []filter.Config `mapstructure:"include"`
	Exclude []filter.Config `mapstructure:"exclude"`
}

// choice is a FilterConfig made ready.
type choice struct {
	include, exclude filter.Filter // nil for one that was not given
}

func (c FilterConfig) choice() (made choice) {
	if len(c.Include) > 0 {
		made.include = filter.CreateFilter(c.Include)
	}
	if len(c.Exclude) > 0 {
		made.exclude = filter.CreateFilter(c.Exclude)
	}
	return made
}

func (c choice) all() bool { return c.include == nil && c.exclude == nil }

// takes says whether a device is to be told of that goes by these names.
func (c choice) takes(names ...string) bool {
	matches := func(f filter.Filter) bool {
		return slices.ContainsFunc(names, func(name string) bool { return f.Matches(name) })
	}
	return (c.include == nil || matches(c.include)) && (c.exclude == nil || !matches(c.exclude))
}

// devices are the chosen ones.
type devices struct{ disks, gpus choice }

// keep takes the others out of a snapshot, which must be nobody else's.
func (d devices) keep(s *sample.Snapshot) {
	if !d.disks.all() {
		s.Disks.Disks = slices.DeleteFunc(s.Disks.Disks, func(x sample.Disk) bool { return !d.disks.takes(x.Name) })
		s.Drives.Drives = slices.DeleteFunc(s.Drives.Drives, func(x sample.Drive) bool { return !d.disks.takes(x.Device) })
	}
	if d.gpus.all() {
		return
	}
	// Of processes on a GPU that is not there, no metric tells.
	s.GPUs.GPUs = slices.DeleteFunc(s.GPUs.GPUs, func(g sample.GPU) bool {
		return !d.takesGPU(&g)
	})
}

func (d devices) takesGPU(g *sample.GPU) bool {
	return d.gpus.takes(g.ID, g.Name, strconv.Itoa(g.Index))
}
