// Package sample defines the readings of a machine and the loop that takes them.
//
// A Source fills a Sample. Counters are cumulative since the device or process started. Times are time.Duration and
// sizes are bytes, whatever the unit of the kernel.
package sample

import (
	"strconv"
	"strings"
	"time"
)

// Stamp is the time of a reading on two clocks. Mono never steps; use it to compare stamps of one process. Wall is for
// spans and metrics.
type Stamp struct {
	Mono time.Duration `json:"mono"` // since an origin that is fixed for a process and its recordings
	Wall time.Time     `json:"wall"` // without a monotonic reading
}

// origin has a monotonic reading, so that Stamp.Mono is a difference on CLOCK_MONOTONIC. NTP slews that clock but never
// steps it, and it stops while the machine is suspended.
var origin = time.Now()

// Began returns when this program began, on the wall clock of that time.
func Began() time.Time { return origin.Round(0) }

// Now returns the present time on both clocks, from one call.
func Now() Stamp {
	now := time.Now()
	at := Stamp{Mono: now.Sub(origin), Wall: now.Round(0)}
	if wallOffset != nil {
		at.Wall = at.Wall.Add(wallOffset(at.Mono))
	}
	return at
}

// Next returns the stamp that is step later than s. Its wall time is that of now less its age: it follows a clock that
// was set, and otherwise increases.
func (s Stamp) Next(now Stamp, step time.Duration) Stamp {
	next := Stamp{Mono: s.Mono + step, Wall: now.Wall.Add(s.Mono + step - now.Mono)}
	if back := s.Wall.Sub(next.Wall); back >= 0 && back < time.Second {
		next.Wall = s.Wall.Add(time.Microsecond) // the clock is slewed back, which must not reorder rows
	}
	return next
}

// wallOffset steps the wall clock, with the build tag overhead alone.
var wallOffset func(mono time.Duration) time.Duration

// Sample is one reading by one Source. A source fills its own slices only. What the machine does not offer is absent,
// not zero. A Sample is reused from tick to tick: copy what you keep.
type Sample struct {
	At        Stamp      `json:"at"`
	Disks     []Disk     `json:"disks,omitempty"`
	Pressures []Pressure `json:"pressures,omitempty"`
	Cores     []Core     `json:"cores,omitempty"`
	Jobs      []Job      `json:"jobs,omitempty"`
	Processes []Process  `json:"processes,omitempty"`

	// Candidates are processes with their children that work and are not announced: a span may name one of them.
	// Their counters go on in Jobs when they are followed.
	Candidates []Job `json:"candidates,omitempty"`

	GPUs []GPU `json:"gpus,omitempty"`

	// GPUProcesses comes with GPUs, in readings that requested it: then GPUProcessesRead is true.
	GPUProcesses     []GPUProcess `json:"gpu_processes,omitempty"`
	GPUProcessesRead bool         `json:"gpu_processes_read,omitempty"`

	// GPUDetails comes with GPUs, about once a second, in the first row after the driver returned it.
	GPUDetails []GPUDetail `json:"gpu_details,omitempty"`

	// DriverUse is nil where it has not changed. It is immutable.
	DriverUse *DriverUse `json:"driver_use,omitempty"`

	// Peers holds the peers of all jobs, in readings of connections: about one a second.
	Peers []Peer `json:"peers,omitempty"`

	// Drives holds all drives of the machine, after a complete round of smartctl.
	Drives []Drive `json:"drives,omitempty"`

	// MountCounters and GPUDirect come once a second. MountsRead is true if MountCounters are all that there are, also if
	// the last one has gone. GPUDirect is nil without its driver.
	MountCounters []MountCounters `json:"mount_counters,omitempty"`
	MountsRead    bool            `json:"mounts_read,omitempty"`
	GPUDirect     *GPUDirect      `json:"gpu_direct,omitempty"`

	// Schedule is nil in readings without evidence of the scheduler.
	Schedule *Schedule `json:"schedule,omitempty"`

	// Moments is nil in readings without jobs whose threads are looked at.
	Moments *Moments `json:"moments,omitempty"`

	// Latencies holds all of them, about once a second.
	Latencies []Latency `json:"latencies,omitempty"`

	// Edge requests everything that the source has, because a window starts or ends. At an ordinary tick a source may
	// leave out what has not changed for a while.
	Edge bool `json:"-"`
}

// Reset empties s and keeps its memory, so that a tick allocates nothing.
func (s *Sample) Reset() {
	s.At, s.Edge = Stamp{}, false
	s.Disks = s.Disks[:0]
	s.Pressures = s.Pressures[:0]
	s.Cores = s.Cores[:0]
	s.Jobs = s.Jobs[:0]
	s.Processes, s.Candidates = s.Processes[:0], s.Candidates[:0]
	s.GPUs = s.GPUs[:0]
	s.GPUProcesses, s.GPUProcessesRead = s.GPUProcesses[:0], false
	s.GPUDetails, s.DriverUse = s.GPUDetails[:0], nil
	s.Drives, s.Peers = s.Drives[:0], s.Peers[:0]
	s.MountCounters, s.MountsRead, s.GPUDirect = s.MountCounters[:0], false, nil
	s.Schedule, s.Moments = nil, nil
	s.Latencies = s.Latencies[:0]
}

// Empty reports whether a reading has no values. A recording leaves it out.
func (s *Sample) Empty() bool {
	devices := len(s.Disks) + len(s.Pressures) + len(s.Cores) + len(s.Jobs) + len(s.Processes) + len(s.Candidates) +
		len(s.GPUs) + len(s.Drives) + len(s.Latencies) + len(s.MountCounters)
	events := s.Schedule != nil || s.Moments != nil
	return devices == 0 && !events && s.GPUDirect == nil && !s.MountsRead
}

// Resource is what a task can wait for, as PSI divides it (Documentation/accounting/psi.rst).
type Resource string

const (
	CPU    Resource = "cpu"
	Memory Resource = "memory"
	IO     Resource = "io"
)

// HostScope is the Pressure scope of the whole machine.
const HostScope = ""

// Pressure holds the stall totals of one resource. The kernel counts microseconds and updates them on each read, so
// they are exact over any interval. They are not wall-clock time: the kernel averages over CPUs, weighted by the time
// each was not idle.
type Pressure struct {
	Scope    string        `json:"scope,omitempty"` // HostScope, or a cgroup v2 path as in /proc/PID/cgroup
	Resource Resource      `json:"resource"`
	Some     time.Duration `json:"some"` // at least one task waited
	Full     time.Duration `json:"full"` // all non-idle tasks waited; part of Some
}

// Core holds the times of one line "cpuN" of /proc/stat (proc_stat(5)). The kernel counts ticks of 10 ms (USER_HZ =
// 100).
type Core struct {
	Name    string        `json:"name"` // "cpu0"
	User    time.Duration `json:"user"` // guest time included
	Nice    time.Duration `json:"nice"`
	System  time.Duration `json:"system"`
	Idle    time.Duration `json:"idle"`
	IOWait  time.Duration `json:"iowait"` // idle while a task of this core waited for I/O; may decrease
	IRQ     time.Duration `json:"irq"`
	SoftIRQ time.Duration `json:"softirq"`
	Steal   time.Duration `json:"steal"`
}

// Busy returns the time that the core worked.
func (c *Core) Busy() time.Duration { return c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ }

// Job is a tree of processes: a wrapped run, or a process that announced a window. Its counters never decrease: they
// include processes that have ended.
type Job struct {
	ID         string        `json:"id"`
	Scope      string        `json:"scope,omitempty"`     // Pressure scope in which the job waits: a cgroup, or HostScope
	OwnScope   bool          `json:"own_scope,omitempty"` // Scope holds only this job
	CPUTime    time.Duration `json:"cpu_time"`            // user and system time of all threads of all processes
	SystemTime time.Duration `json:"system_time"`         // part of CPUTime, in the kernel
	ReadBytes  uint64        `json:"read_bytes"`          // read from storage (/proc/PID/io read_bytes)
	ReadChars  uint64        `json:"read_chars"`          // returned by read calls, page cache and pipes included (rchar)
	WriteBytes uint64        `json:"write_bytes"`         // written to storage (write_bytes)
	HasIO      bool          `json:"has_io,omitempty"`    // /proc/PID/io was readable; otherwise the bytes mean nothing
	Faults     uint64        `json:"faults,omitempty"`    // minor page faults: of pages that were in memory
	Memory     MemoryLimit   `json:"memory,omitzero"`     // of its cgroup, or of the first one above with a limit
	PageCache  PageCache     `json:"page_cache,omitzero"` // of the machine
	Processes  int           `json:"processes"`           // running now
	Mounts     []Mount       `json:"mounts,omitempty"`    // on which it has had files open
	Limits     []Limit       `json:"limits,omitempty"`    // of its cgroup and those above, on block devices; immutable

	// LeaderPIDs are the processes that drive a GPU, each with its first thread; without any, the one that does the
	// program's work in turn.
	LeaderPIDs []int `json:"leader_pids,omitempty"`

	// Ended are the newest processes that ended before the one that began them, and those that are stopped; immutable.
	Ended []Ended `json:"ended,omitempty"`

	// Began is Stamp.Mono when the counters of a candidate were 0: when it started, or when it was seen idle. 0 is the
	// time of the first reading.
	Began time.Duration `json:"began,omitempty"`
}

// Ended is how a process of a job ended, or that it is stopped.
type Ended struct {
	PID    int           `json:"pid"`
	At     time.Duration `json:"at,omitempty"`     // Stamp.Mono of the reading that found it; 0 for before the job was followed
	Lived  time.Duration `json:"lived,omitempty"`  // until then
	Status int           `json:"status,omitempty"` // as of wait(2); 0 for success, or if that was not seen
}

// MemoryLimit is what a cgroup allows its processes to have in memory, files in the page cache included, and what that
// costs; without a limit it has Free alone.
type MemoryLimit struct {
	Cgroup    string `json:"cgroup"`
	Limit     uint64 `json:"limit"`               // bytes
	Used      uint64 `json:"used"`                // bytes
	Free      uint64 `json:"free,omitempty"`      // bytes of the machine that programs could have (MemAvailable)
	Refaulted uint64 `json:"refaulted,omitempty"` // bytes of files read again that the cgroup had dropped, since the job was added
}

// PageCache is what the page cache of a machine took and gave up; zero if it is not known.
type PageCache struct {
	Kept  int64  `json:"kept"`            // bytes of files in it, and those that it gave up for lack of memory, since the job was added
	Drops uint64 `json:"drops,omitempty"` // how often it was dropped as a whole (drop_caches), since then
}

// Process is one member of a Job.
type Process struct {
	PID        int           `json:"pid"`
	Job        string        `json:"job"`
	CPUTime    time.Duration `json:"cpu_time"`
	ReadBytes  uint64        `json:"read_bytes"`
	WriteBytes uint64        `json:"write_bytes"`
	HasIO      bool          `json:"has_io,omitempty"`
	Started    time.Duration `json:"started,omitempty"` // since boot, in ticks of 10 ms; 0 where it is not known
	Feeder     bool          `json:"feeder,omitempty"`  // it feeds the job, or is a child of a process that does
}

// Mount is a mounted file system, from one line of /proc/PID/mountinfo (proc_pid_mountinfo(5)).
type Mount struct {
	ID       int           `json:"id"`
	Point    string        `json:"point"`
	Type     string        `json:"type"`           // "ext4", "nfs4", "fuse.sshfs"
	Source   string        `json:"source"`         // "/dev/vda", "server:/export"
	Root     string        `json:"root,omitempty"` // directory of the file system that is mounted
	Major    uint32        `json:"major"`          // 0 without a block device
	Minor    uint32        `json:"minor"`
	LastSeen time.Duration `json:"last_seen,omitempty"` // Stamp.Mono when a file was last seen open on it
	Direct   time.Duration `json:"direct,omitempty"`    // Stamp.Mono when one was last seen open past the page cache (O_DIRECT)
	Device   string        `json:"device,omitempty"`    // of a mount of a Job: the whole block devices directly below, with spaces between them
}

// GPUName is how people name a GPU, by its GPU.Vendor and Index: each maker's tools count from 0.
func GPUName(vendor string, index int) string {
	return strings.TrimLeft(vendor+" GPU "+strconv.Itoa(index), " ")
}

// GPU is one GPU, or one MIG device of it.
type GPU struct {
	ID     string        `json:"id"`               // hw.id: "GPU-<uuid>", "MIG-<uuid>", "emulated-0"
	Name   string        `json:"name"`             // hw.name: product name, "NVIDIA H200"
	Index  int           `json:"index,omitempty"`  // as in nvidia-smi, or among AMD's
	Driver string        `json:"driver,omitempty"` // driver version
	Vendor string        `json:"vendor,omitempty"` // hw.vendor: "AMD"; "" for NVIDIA, if there is a driver
	Parent string        `json:"parent,omitempty"` // hw.parent: of a MIG device, the ID of its GPU
	Status GPUStatus     `json:"status,omitempty"` // unless GPUWorks, the fields below have no meaning
	Busy   time.Duration `json:"busy"`             // time with at least one kernel running; a counter from any start
	// Period is the time between two samples of the driver, between which Busy is interpolated; 0 if Busy is exact.
	Period time.Duration `json:"period,omitempty"`

	MemoryUsed  uint64  `json:"memory_used,omitempty"`  // bytes
	MemoryTotal uint64  `json:"memory_total,omitempty"` // bytes
	Temperature float64 `json:"temperature,omitempty"`  // of the chip, degrees Celsius
	// Power is in watts: the mean of about the last second where the GPU counts its energy, else the driver's average.
	Power  float64 `json:"power,omitempty"`
	Energy float64 `json:"energy,omitempty"` // joules, a counter since the driver was loaded; the newest by power

	LinkWidth         int `json:"link_width,omitempty"`      // PCIe lanes in use now
	LinkGeneration    int `json:"link_generation,omitempty"` // PCIe generation in use now; it falls while the GPU idles
	LinkWidthMax      int `json:"link_width_max,omitempty"`  // what GPU and slot support
	LinkGenerationMax int `json:"link_generation_max,omitempty"`

	Has GPUFields `json:"has,omitempty"`
}

// GPUStatus is whether a GPU can be read.
type GPUStatus string

const (
	GPUWorks GPUStatus = ""
	GPUHung  GPUStatus = "hung" // its own call has not returned for too long
	GPULost  GPUStatus = "lost" // the driver reports that it is gone, or no longer lists it
	// GPUUnknown is for a GPU that gives no answer: the driver as a whole does not, or there is no room for a call.
	GPUUnknown  GPUStatus = "unknown"
	GPUReleased GPUStatus = "released" // on request, this program has no session with the driver for a time
	GPUAsleep   GPUStatus = "asleep"   // it sleeps, or may: this program does not keep it awake
)

// IsKnown reports whether something of the GPU's state is known.
func (s GPUStatus) IsKnown() bool { return s == GPUWorks || s == GPUHung || s == GPULost }

// GPUFields says which of the later fields this GPU and its driver support. Others are zero.
type GPUFields uint16

const (
	HasMemory GPUFields = 1 << iota // MemoryUsed, MemoryTotal
	HasTemperature
	HasPower
	HasEnergy
	HasLink    // LinkWidth, LinkGeneration
	HasLinkMax // LinkWidthMax, LinkGenerationMax
	LacksBusy  // Busy is not available at present, as for a GPU that is divided into MIG devices
	// AveragesBusy: the newest growth of Busy is an average at the end of each Period, which may leave out the rest of it.
	AveragesBusy
)

// GPUProcess is a process that holds memory of a GPU.
type GPUProcess struct {
	GPU    string `json:"gpu"` // GPU.ID
	PID    int    `json:"pid"` // in the initial PID namespace
	Memory uint64 `json:"memory,omitempty"`
	Has    bool   `json:"has_memory,omitempty"` // Memory is known: some drivers report the process alone
}
