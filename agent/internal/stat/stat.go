// Package rate turns two readings of a machine into what happened between them, as iostat -x and nvidia-smi show it.
//
// Nothing here is since boot: what was not there at both readings, or has begun to count again between them, has no
// rate and is absent. A share is a ratio from 0 to 1.
package stat

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Rates is what happened between two readings. Each source's numbers are of the time between its own two readings,
// which differ from the others' by the moments that reading takes, the GPUs' by up to the second that their driver is
// behind.
type Rates struct {
	At       sample.Stamp  // the later of the two readings of the disks; of the cores, where no disk could be read
	Interval time.Duration // between these two readings, by which the disks' rates are made

	Disks       []Disk    // those that did anything since boot, in the kernel's order; sums over disks take leaves only
	GPUs        []GPU     // in the order of the later reading
	Pressure    *Pressure // nil where the kernel does not tell it
	BusiestCore *Core     // nil where no core was there at both readings
}

// Pressure is the share of the interval that I/O stalled tasks of this machine for (PSI, Documentation/accounting/psi.rst).
// It is no share of the wall clock: the kernel weights each CPU by the time that it was not idle.
type Pressure struct {
	Some float64 `json:"io_some"` // at least one task waited
	Full float64 `json:"io_full"` // every task waited that was not idle
}

// Core is a core and the share of the interval in which it worked. The kernel counts in ticks of 10 ms.
type Core struct {
	Name        string  `json:"name"` // "cpu0"
	Utilization float64 `json:"utilization"`
}

// Between is what happened from one reading of a machine to a later one. It keeps neither.
func Between(before, after *sample.Snapshot) Rates {
	r := Rates{At: after.Disks.At, Interval: elapsed(&before.Disks, &after.Disks)}
	if r.Interval <= 0 { // the disks could not be read
		r.At, r.Interval = after.Cores.At, elapsed(&before.Cores, &after.Cores)
	}
	r.Disks = disks(&before.Disks, &after.Disks)
	r.GPUs = gpus(&before.GPUs, &after.GPUs)
	r.Pressure = pressure(&before.Pressures, &after.Pressures)
	r.BusiestCore = busiest(&before.Cores, &after.Cores)
	return r
}

// elapsed is the time between two readings of one source.
func elapsed(before, after *sample.Sample) time.Duration { return after.At.Mono - before.At.Mono }

// share is part of whole, a ratio from 0 to 1: both are sampled, and a part can run a little past its whole. whole is
// more than zero.
func share(part, whole time.Duration) float64 {
	return min(1, max(0, part.Seconds()/whole.Seconds()))
}

func pressure(before, after *sample.Sample) *Pressure {
	interval := elapsed(before, after)
	a, b := hostIO(before.Pressures), hostIO(after.Pressures)
	if interval <= 0 || a == nil || b == nil || b.Some < a.Some || b.Full < a.Full {
		return nil
	}
	return &Pressure{Some: share(b.Some-a.Some, interval), Full: share(b.Full-a.Full, interval)}
}

func hostIO(list []sample.Pressure) *sample.Pressure {
	for i := range list {
		if list[i].Scope == sample.HostScope && list[i].Resource == sample.IO {
			return &list[i]
		}
	}
	return nil
}

// busiest is the core that worked most, the first of several. A core whose time went backwards was offline meanwhile.
func busiest(before, after *sample.Sample) *Core {
	interval := elapsed(before, after)
	if interval <= 0 {
		return nil
	}
	was := make(map[string]time.Duration, len(before.Cores))
	for i := range before.Cores {
		was[before.Cores[i].Name] = before.Cores[i].Busy()
	}
	var most *Core
	var longest time.Duration
	for i := range after.Cores {
		core := &after.Cores[i]
		busy, known := was[core.Name]
		worked := core.Busy() - busy
		if !known || worked < 0 || most != nil && worked <= longest {
			continue
		}
		longest, most = worked, &Core{Name: core.Name, Utilization: share(worked, interval)}
	}
	return most
}
