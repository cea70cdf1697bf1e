package monitor

import (
	"os"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/trust"
)

// Rights are what a monitor may read besides what belongs to its own user.
type Rights struct {
	Scheduler  bool     // the changes of state of all threads
	Refused    string   // why not; "" if they are
	Lacks      []string // what the kernel's tracepoints would give, and do not
	OtherUsers bool     // what processes of other users read and write
}

// Rights returns them as they are now: the helper that has them may have ended.
func (m *Monitor) Rights() (r Rights) {
	if m.sources != nil {
		r.Scheduler, r.Refused = m.sources.FollowsScheduler()
		r.Lacks = m.sources.Lacks()
	}
	r.OtherUsers = trust.MayTrace()
	if m.config.Reader != nil {
		r.OtherUsers = m.config.Reader.Bytes([]process.Key{{PID: os.Getpid()}}, make([]process.Bytes, 1)) == nil
	}
	return r
}

// Refusals lists what is not known, or less well, as the kernel refuses the programs for it or a part of them. It is
// empty where these are switched off.
func (m *Monitor) Refusals() (all []string) {
	if m.sources == nil {
		return nil
	}
	if follows, why := m.sources.FollowsScheduler(); !follows && m.config.Schedule {
		all = append(all, "the threads of jobs are looked at at random moments ("+why+")")
	}
	return append(all, m.sources.Lacks()...)
}

// Retry has the next reading try again what the kernel refused. In any case, it is tried again after 1 and 10 minutes,
// and each hour.
func (m *Monitor) Retry() {
	if m.sources != nil {
		m.sources.Retry()
	}
}

// GPUs returns the GPUs of the newest reading.
func (m *Monitor) GPUs() []sample.GPU { return m.readings.GPUs() }

// Disks returns the names of the machine's disks, without partitions and disks that are stacked on others.
func (m *Monitor) Disks() []string { return m.readings.Disks() }
