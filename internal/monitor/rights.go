package monitor

import (
	"os"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/bpf"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/trust"
)

// Rights are what a monitor may read besides what belongs to its own user.
type Rights struct {
	Scheduler  bool     // the changes of state of all threads
	Refused    string   // why not; "" if they are
	Lacks      []string // what else the kernel's tracepoints would give, and do not, by cause
	OtherUsers bool     // what processes of other users read and write
}

// Rights returns them as they are now: the helper that has them may have ended.
func (m *Monitor) Rights() (r Rights) {
	if !m.config.Recorded {
		r.Scheduler, r.Refused = m.sources.FollowsScheduler()
		r.Lacks = m.sources.Lacks().Without(bpf.Threads).Causes()
	}
	r.OtherUsers = trust.MayTrace()
	if m.config.Reader != nil {
		r.OtherUsers = m.config.Reader.Bytes([]process.Key{{PID: os.Getpid()}}, make([]process.Bytes, 1)) == nil
	}
	return r
}

// Refusals lists the parts of the evidence that the kernel refuses. It is empty where these are switched off.
func (m *Monitor) Refusals() bpf.Refusals { return m.sources.Lacks() }

// Retry has the next reading try again what the kernel refused. In any case, it is tried again after 1 and 10 minutes,
// and each hour.
func (m *Monitor) Retry() { m.sources.Retry() }

// ReleaseGPUs has all files of the GPUs' driver closed for a time, or opened again with 0. It returns once they are
// closed, or an error.
func (m *Monitor) ReleaseGPUs(length time.Duration) error {
	return m.sources.ReleaseGPUs(length)
}

// GPUs returns the GPUs of the newest reading.
func (m *Monitor) GPUs() []sample.GPU { return m.readings.GPUs() }

// Disks returns the names of the machine's disks, without partitions and disks that are stacked on others.
func (m *Monitor) Disks() []string { return m.readings.Disks() }
