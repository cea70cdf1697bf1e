package sample

import (
	"slices"
	"time"
)

// Snapshot is the newest reading of every source, with the time of each.
type Snapshot struct {
	Boot time.Time // boot time of the machine; zero where it is not known

	Disks     Sample
	Pressures Sample
	Cores     Sample
	Jobs      Sample // with Processes
	GPUs      Sample
	Drives    Sample
	Latencies Sample
	Mounts    Sample // MountCounters and GPUDirect
	Peers     Sample

	Ended []Process // members of a job that ended since Forget; the newest maxEnded

	Ceilings []Ceiling // of leaf disks; immutable

	GPUTimes []GPUTime // since the program began; those of jobs that ended stay for a day
	JobNames []JobName // of the jobs in GPUTimes, where known

	GPUTotals []GPUTime // of each GPU, all jobs together
}

// Ceiling is the highest throughput that a disk reached over about a second, in bytes/s; 0 if it is not known.
type Ceiling struct {
	Disk      string        `json:"disk"`
	Read      float64       `json:"read"`
	Write     float64       `json:"write,omitempty"`
	Full      float64       `json:"full,omitempty"` // of reads, while the disk always had more of them to do; 0 if it never had
	ReadAwait time.Duration `json:"read_await"`     // median of a read of 4 KiB at queue depth 1, from stallspan bench; else 0
}

// maxEnded bounds Snapshot.Ended: a job may start a process between any two readings.
const maxEnded = 1024

// Learn copies what s has, into the memory of the previous reading.
func (n *Snapshot) Learn(s *Sample) {
	if len(s.Disks) > 0 {
		n.Disks.At, n.Disks.Disks = s.At, append(n.Disks.Disks[:0], s.Disks...)
	}
	if len(s.Pressures) > 0 {
		n.Pressures.At, n.Pressures.Pressures = s.At, append(n.Pressures.Pressures[:0], s.Pressures...)
	}
	if len(s.Cores) > 0 {
		n.Cores.At, n.Cores.Cores = s.At, append(n.Cores.Cores[:0], s.Cores...)
	}
	if len(s.Jobs) > 0 {
		n.end(s.Processes)
		n.Jobs.At = s.At
		n.Jobs.Jobs = append(n.Jobs.Jobs[:0], s.Jobs...)
		n.Jobs.Processes = append(n.Jobs.Processes[:0], s.Processes...)
	}
	if len(s.Peers) > 0 {
		n.Peers.At, n.Peers.Peers = s.At, append(n.Peers.Peers[:0], s.Peers...)
	}
	if len(s.Drives) > 0 {
		n.Drives.At, n.Drives.Drives = s.At, append(n.Drives.Drives[:0], s.Drives...)
	}
	if len(s.Latencies) > 0 {
		n.Latencies.At, n.Latencies.Latencies = s.At, append(n.Latencies.Latencies[:0], s.Latencies...)
	}
	if s.MountsRead || s.GPUDirect != nil {
		n.Mounts.At, n.Mounts.GPUDirect = s.At, s.GPUDirect
		n.Mounts.MountCounters = append(n.Mounts.MountCounters[:0], s.MountCounters...)
	}
	if len(s.GPUs) > 0 {
		n.GPUs.At, n.GPUs.GPUs = s.At, append(n.GPUs.GPUs[:0], s.GPUs...)
		if s.GPUProcessesRead {
			n.GPUs.GPUProcesses, n.GPUs.GPUProcessesRead = append(n.GPUs.GPUProcesses[:0], s.GPUProcesses...), true
		}
		n.detail(s)
		if s.DriverUse != nil {
			n.GPUs.DriverUse = s.DriverUse
		}
	}
}

// detail keeps the newest detail of each listed GPU, and only the error counts of a GPU that cannot be read.
func (n *Snapshot) detail(s *Sample) {
	if len(s.GPUDetails) == 0 && len(n.GPUs.GPUDetails) == 0 {
		return
	}
	n.GPUs.GPUDetails = slices.DeleteFunc(n.GPUs.GPUDetails, func(old GPUDetail) bool {
		newer := slices.ContainsFunc(s.GPUDetails, func(d GPUDetail) bool { return d.GPU == old.GPU })
		i := slices.IndexFunc(s.GPUs, func(g GPU) bool { return g.ID == old.GPU })
		return newer || i < 0 || s.GPUs[i].Status != GPUWorks && len(old.XIDs) == 0
	})
	for i := range n.GPUs.GPUDetails {
		old := &n.GPUs.GPUDetails[i]
		if slices.ContainsFunc(s.GPUs, func(g GPU) bool { return g.ID == old.GPU && g.Status != GPUWorks }) {
			old.Values = GPUValues{}
		}
	}
	n.GPUs.GPUDetails = append(n.GPUs.GPUDetails, s.GPUDetails...)
}

// Unfollow removes a job that is no longer followed, and moves its processes to Ended. Learn cannot do this for the
// last job.
func (n *Snapshot) Unfollow(job string) {
	others := slices.DeleteFunc(slices.Clone(n.Jobs.Processes), func(p Process) bool { return p.Job == job })
	n.end(others)
	n.Jobs.Processes = others
	n.Jobs.Jobs = slices.DeleteFunc(n.Jobs.Jobs, func(j Job) bool { return j.ID == job })
	n.Peers.Peers = slices.DeleteFunc(n.Peers.Peers, func(p Peer) bool { return p.Job == job })
}

// end moves processes to Ended that are not among the new ones.
func (n *Snapshot) end(now []Process) {
	if slices.EqualFunc(n.Jobs.Processes, now, func(p, q Process) bool { return p.identity() == q.identity() }) {
		return // at nearly every tick
	}
	running := make(map[identity]bool, len(now))
	for i := range now {
		running[now[i].identity()] = true
	}
	for i := range n.Jobs.Processes {
		if p := &n.Jobs.Processes[i]; !running[p.identity()] {
			n.Ended = append(n.Ended, *p)
		}
	}
	if over := len(n.Ended) - maxEnded; over > 0 {
		n.Ended = slices.Delete(n.Ended, 0, over)
	}
}

// identity is unique among all processes since boot.
type identity struct {
	pid     int
	started time.Duration
}

func (p *Process) identity() identity { return identity{p.PID, p.Started} }

// Forget clears Ended.
func (n *Snapshot) Forget() { n.Ended = n.Ended[:0] }

// Clone returns a copy that later readings do not change.
func (n *Snapshot) Clone() Snapshot {
	c := *n
	c.Disks.Disks = slices.Clone(n.Disks.Disks)
	c.Pressures.Pressures = slices.Clone(n.Pressures.Pressures)
	c.Cores.Cores = slices.Clone(n.Cores.Cores)
	c.Jobs.Jobs = slices.Clone(n.Jobs.Jobs)
	c.Jobs.Processes = slices.Clone(n.Jobs.Processes)
	c.GPUs.GPUs = slices.Clone(n.GPUs.GPUs)
	c.GPUs.GPUProcesses = slices.Clone(n.GPUs.GPUProcesses)
	c.Drives.Drives = slices.Clone(n.Drives.Drives)
	c.Peers.Peers = slices.Clone(n.Peers.Peers)
	c.GPUs.GPUDetails = slices.Clone(n.GPUs.GPUDetails)
	c.Latencies.Latencies = slices.Clone(n.Latencies.Latencies)
	c.Mounts.MountCounters = slices.Clone(n.Mounts.MountCounters)
	c.Ended = slices.Clone(n.Ended)
	return c
}
