// Package stat computes the rates between two readings of a machine, as iostat -x and nvidia-smi show them.
//
// No number is since boot: a device that is missing in one of the readings, or whose counters restarted in between, is
// left out. A share is a ratio from 0 to 1.
package stat

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Rates holds the rates between two readings. The numbers of each source are for the interval between its own readings,
// which start microseconds apart. Readings of GPUs are up to a second late.
type Rates struct {
	At       sample.Stamp  // of the later reading of the disks, or of the cores if no disk could be read
	Interval time.Duration // between these two readings

	Disks       []Disk    // disks with any I/O since boot, in the order of the kernel; add leaves only
	GPUs        []GPU     // in the order of the later reading
	Pressure    *Pressure // nil without PSI
	BusiestCore *Core     // nil if no core is in both readings
	Busy        float64   // share of the time of all cores with work; -1 if no core is in both readings
}

// Pressure is the share of the interval in which I/O stalled tasks (PSI, Documentation/accounting/psi.rst). It is not a
// share of wall-clock time: the kernel weights each CPU by the time that it was not idle.
type Pressure struct {
	Some float64 `json:"io_some"` // at least one task waited
	Full float64 `json:"io_full"` // all non-idle tasks waited
}

// Core is a core and its utilization. The kernel counts ticks of 10 ms.
type Core struct {
	Name        string  `json:"name"` // "cpu0"
	Utilization float64 `json:"utilization"`
}

// Between returns the rates from one reading of a machine to a later one.
func Between(before, after *sample.Snapshot) Rates {
	r := Rates{At: after.Disks.At, Interval: elapsed(&before.Disks, &after.Disks)}
	if r.Interval <= 0 { // the disks could not be read
		r.At, r.Interval = after.Cores.At, elapsed(&before.Cores, &after.Cores)
	}
	r.Disks = disks(&before.Disks, &after.Disks)
	r.GPUs = gpus(&before.GPUs, &after.GPUs)
	r.Pressure = pressure(&before.Pressures, &after.Pressures)
	r.BusiestCore, r.Busy = cores(&before.Cores, &after.Cores)
	return r
}

// elapsed returns the time between two readings of one source.
func elapsed(before, after *sample.Sample) time.Duration { return after.At.Mono - before.At.Mono }

// share returns part of whole as a ratio from 0 to 1. Both are sampled, so that a part can exceed the whole a little.
// whole is positive.
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

// cores returns the core that worked most, or the first of several, and the share of all. A core with a decreased time
// was offline.
func cores(before, after *sample.Sample) (busiest *Core, all float64) {
	interval := elapsed(before, after)
	if interval <= 0 {
		return nil, -1
	}
	earlier := make(map[string]time.Duration, len(before.Cores))
	for i := range before.Cores {
		earlier[before.Cores[i].Name] = before.Cores[i].Busy()
	}
	var longest, sum time.Duration
	known := 0
	for i := range after.Cores {
		core := &after.Cores[i]
		busy, had := earlier[core.Name]
		worked := core.Busy() - busy
		if !had || worked < 0 {
			continue
		}
		known++
		sum += worked
		if busiest == nil || worked > longest {
			longest, busiest = worked, &Core{Name: core.Name, Utilization: share(worked, interval)}
		}
	}
	if known == 0 {
		return nil, -1
	}
	return busiest, share(sum, interval*time.Duration(known))
}
