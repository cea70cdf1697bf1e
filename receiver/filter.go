//go:build linux && (amd64 || arm64)

package receiver

import (
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/filter"

	"github.com/stallspan/stallspan/internal/sample"
)

// FilterConfig selects devices for metrics and events. Without Include, all devices are included. Windows are judged by
// all devices.
type FilterConfig struct {
	Include []filter.Config `mapstructure:"include"`
	Exclude []filter.Config `mapstructure:"exclude"`
}

// nameFilter is a compiled FilterConfig. The zero value includes everything.
type nameFilter struct {
	include, exclude filter.Filter // nil if not configured
}

func (c FilterConfig) compile() (f nameFilter) {
	if len(c.Include) > 0 {
		f.include = filter.CreateFilter(c.Include)
	}
	if len(c.Exclude) > 0 {
		f.exclude = filter.CreateFilter(c.Exclude)
	}
	return f
}

// includes reports whether a device with these names is included.
func (f nameFilter) includes(names ...string) bool {
	matches := func(f filter.Filter) bool {
		return slices.ContainsFunc(names, func(name string) bool { return f.Matches(name) })
	}
	return (f.include == nil || matches(f.include)) && (f.exclude == nil || !matches(f.exclude))
}

// deviceFilter selects the devices of a snapshot.
type deviceFilter struct{ disks, gpus nameFilter }

// apply removes the excluded devices from a snapshot. Metrics of processes follow their GPU.
func (f deviceFilter) apply(s *sample.Snapshot) {
	if f.disks != (nameFilter{}) {
		s.Disks.Disks = slices.DeleteFunc(s.Disks.Disks, func(d sample.Disk) bool { return !f.disks.includes(d.Name) })
		s.Latencies.Latencies = slices.DeleteFunc(s.Latencies.Latencies,
			func(l sample.Latency) bool { return !f.disks.includes(l.Disk) })
		s.Drives.Drives = slices.DeleteFunc(s.Drives.Drives, func(d sample.Drive) bool { return !f.disks.includes(d.Device) })
	}
	if f.gpus != (nameFilter{}) {
		excluded := func(id string) bool {
			known := func(g sample.GPU) bool { return g.ID == id }
			i := slices.IndexFunc(s.GPUs.GPUs, known)
			return i >= 0 && !f.includesGPU(&s.GPUs.GPUs[i])
		}
		s.GPUTimes = slices.DeleteFunc(s.GPUTimes, func(t sample.GPUTime) bool { return excluded(t.GPU) })
		s.GPUs.GPUs = slices.DeleteFunc(s.GPUs.GPUs, func(g sample.GPU) bool { return !f.includesGPU(&g) })
	}
}

func (f deviceFilter) includesGPU(g *sample.GPU) bool {
	return f.gpus.includes(g.ID, g.Name, strconv.Itoa(g.Index), sample.GPUName(g.Vendor, g.Index))
}
