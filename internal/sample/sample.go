// Package sample holds what a reading of this machine looks like, and the loop that takes readings.
//
// A Source fills a Sample; nothing here knows where the numbers come from or where they go. All counters are
// cumulative since the device or process began, all times are time.Duration and all sizes are bytes, whatever
// unit the kernel uses for them.
package sample

import "time"

// Stamp says when something was read, on two clocks: Mono never steps, Wall is what the rest of the world writes
// on its spans. Comparing two stamps of one process uses Mono alone.
type Stamp struct {
	Mono time.Duration `json:"mono"` // since an origin that is fixed for the process, or for the recording
	Wall time.Time     `json:"wall"` // without a monotonic part
}

// origin carries a monotonic reading, so every Stamp's Mono is a difference of monotonic clocks (Linux:
// CLOCK_MONOTONIC, which NTP slews but never steps and which stands still while the machine is suspended).
var origin = time.Now()

// Now is the present moment on both clocks, taken from one call so that they belong together.
func Now() Stamp {
	now := time.Now()
	return Stamp{Mono: now.Sub(origin), Wall: now.Round(0)}
}

// Sample is one reading by one Source. Only the slices that the source is about are filled; what the machine does
// not offer is absent rather than zero. A Sample is reused from tick to tick: who wants to keep it copies it.
type Sample struct {
	At        Stamp      `json:"at"`
	Disks     []Disk     `json:"disks,omitempty"`
	Pressures []Pressure `json:"pressures,omitempty"`
	Cores     []Core     `json:"cores,omitempty"`
	Jobs      []Job      `json:"jobs,omitempty"`
	Processes []Process  `json:"processes,omitempty"`
	GPUs      []GPU      `json:"gpus,omitempty"`

	// GPUProcesses comes with GPUs, and only from a reading that asked for it: GPUProcessesRead says that it did.
	GPUProcesses     []GPUProcess `json:"gpu_processes,omitempty"`
	GPUProcessesRead bool         `json:"gpu_processes_read,omitempty"`

	// GPUDetails comes with GPUs, of each GPU in the first row after it was asked, about once a second.
	GPUDetails []GPUDetail `json:"gpu_details,omitempty"`

	// DriverUse is nil where nothing new is told; never changed once given.
	DriverUse *DriverUse `json:"driver_use,omitempty"`

	// Drives is all drives of the machine, from a round of questions that has ended.
	Drives []Drive `json:"drives,omitempty"`

	// Edge asks the source for everything that it has: the reading is for the beginning or the end of a window. At an
	// ordinary tick it may leave out what has not moved for a while.
	Edge bool `json:"-"`
}

// Reset empties s and keeps its memory, so that a tick allocates nothing.
func (s *Sample) Reset() {
	s.At, s.Edge = Stamp{}, false
	s.Disks = s.Disks[:0]
	s.Pressures = s.Pressures[:0]
	s.Cores = s.Cores[:0]
	s.Jobs = s.Jobs[:0]
	s.Processes = s.Processes[:0]
	s.GPUs = s.GPUs[:0]
	s.GPUProcesses, s.GPUProcessesRead = s.GPUProcesses[:0], false
	s.GPUDetails, s.DriverUse = s.GPUDetails[:0], nil
	s.Drives = s.Drives[:0]
}

// Resource is what a task can wait for, as PSI tells them apart (Documentation/accounting/psi.rst).
type Resource string

const (
	CPU    Resource = "cpu"
	Memory Resource = "memory"
	IO     Resource = "io"
)

// HostScope is the Pressure scope of the whole machine.
const HostScope = ""

// Pressure is one resource's stall totals. PSI keeps them in microseconds and brings them up to date when they
// are read, so they are exact over any interval; but they are no wall time: the kernel averages over CPUs, each
// weighted by the time it was not idle.
type Pressure struct {
	Scope    string        `json:"scope,omitempty"` // HostScope, or a cgroup v2 path as in /proc/PID/cgroup
	Resource Resource      `json:"resource"`
	Some     time.Duration `json:"some"` // at least one task waited
	Full     time.Duration `json:"full"` // every non-idle task waited; part of Some
}

// Core is one line "cpuN" of /proc/stat. The kernel counts in ticks of 10 ms (USER_HZ = 100).
type Core struct {
	Name    string        `json:"name"` // "cpu0"
	User    time.Duration `json:"user"` // guest time included
	Nice    time.Duration `json:"nice"`
	System  time.Duration `json:"system"`
	Idle    time.Duration `json:"idle"`
	IOWait  time.Duration `json:"iowait"` // idle while a task of this core waited for a disk; may go backwards
	IRQ     time.Duration `json:"irq"`
	SoftIRQ time.Duration `json:"softirq"`
	Steal   time.Duration `json:"steal"`
}

// Busy is the time that the core did work.
func (c *Core) Busy() time.Duration { return c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ }

// Job is a tree of processes that belong together: a wrapped run, or a process that announced a window. Its
// counters only grow: what a process had done stays counted after it is gone.
type Job struct {
	ID         string        `json:"id"`
	Scope      string        `json:"scope,omitempty"`     // the Pressure scope in which the job waits: a cgroup, or HostScope
	OwnScope   bool          `json:"own_scope,omitempty"` // Scope holds this job and nothing else
	CPUTime    time.Duration `json:"cpu_time"`            // all threads of all its processes, user and system
	SystemTime time.Duration `json:"system_time"`         // of it, in the kernel
	ReadBytes  uint64        `json:"read_bytes"`          // fetched from storage for it (/proc/PID/io read_bytes)
	ReadChars  uint64        `json:"read_chars"`          // asked for by read calls, page cache and pipes included (rchar)
	WriteBytes uint64        `json:"write_bytes"`         // sent to storage (write_bytes)
	HasIO      bool          `json:"has_io,omitempty"`    // /proc/PID/io could be read; without it the byte counters are meaningless
	Processes  int           `json:"processes"`           // alive now
	Mounts     []Mount       `json:"mounts,omitempty"`    // on which it has had files open

	// Of single threads (/proc/PID/task/TID/schedstat, Documentation/scheduler/sched-stats.rst):
	Leaders     time.Duration `json:"leaders,omitempty"`      // thread-seconds: for which threads that drive an accelerator were known, the first ones of their processes
	LeaderTime  time.Duration `json:"leader_time,omitempty"`  // of it, on a CPU
	LeaderReady time.Duration `json:"leader_ready,omitempty"` // of it, ready and waiting for a CPU
	ReaderTime  time.Duration `json:"reader_time,omitempty"`  // thread-seconds: the threads, but for those, that have fetched data within the last seconds
	ReaderWork  time.Duration `json:"reader_work,omitempty"`  // of it, on a CPU or ready and waiting for one
	InReads     time.Duration `json:"in_reads,omitempty"`     // thread-seconds of both: asleep in a read of a file, by samples; only where data come from no disk of this machine
}

// Process is one member of a Job.
type Process struct {
	PID        int           `json:"pid"`
	Job        string        `json:"job"`
	CPUTime    time.Duration `json:"cpu_time"`
	ReadBytes  uint64        `json:"read_bytes"`
	WriteBytes uint64        `json:"write_bytes"`
	HasIO      bool          `json:"has_io,omitempty"`
	Started    time.Duration `json:"started,omitempty"` // since boot, to the tick of 10 ms; 0 where it is not known
}

// Mount is a mounted file system, from one line of /proc/PID/mountinfo.
type Mount struct {
	ID       int           `json:"id"`
	Point    string        `json:"point"`
	Type     string        `json:"type"`           // "ext4", "nfs4", "fuse.sshfs"
	Source   string        `json:"source"`         // "/dev/vda", "server:/export"
	Root     string        `json:"root,omitempty"` // which directory of the file system is mounted
	Major    uint32        `json:"major"`          // 0 where no block device lies under it
	Minor    uint32        `json:"minor"`
	LastSeen time.Duration `json:"last_seen,omitempty"` // Stamp.Mono at which a file was last seen open on it
}

// GPU is one accelerator, or one MIG slice of it.
type GPU struct {
	ID     string        `json:"id"`               // hw.id: "GPU-<uuid>", "MIG-<uuid>", "emulated-0"
	Name   string        `json:"name"`             // hw.name: what a person calls it, "NVIDIA H200"
	Index  int           `json:"index,omitempty"`  // as nvidia-smi counts the devices of this machine
	Driver string        `json:"driver,omitempty"` // the version of its driver
	Parent string        `json:"parent,omitempty"` // hw.parent: of a MIG slice, the ID of its GPU
	Status GPUStatus     `json:"status,omitempty"` // whether it can be read; what follows is of no meaning unless it can
	Busy   time.Duration `json:"busy"`             // time in which at least one kernel ran, summed since an arbitrary moment

	MemoryUsed  uint64  `json:"memory_used,omitempty"`  // bytes
	MemoryTotal uint64  `json:"memory_total,omitempty"` // bytes
	Temperature float64 `json:"temperature,omitempty"`  // degrees Celsius, of the chip
	Power       float64 `json:"power,omitempty"`        // watts: the mean of about the last second where the GPU counts its energy, else as its driver averages
	Energy      float64 `json:"energy,omitempty"`       // joules, a counter since the driver was loaded

	LinkWidth         int `json:"link_width,omitempty"`      // PCIe lanes in use now
	LinkGeneration    int `json:"link_generation,omitempty"` // PCIe generation in use now; it falls while the GPU idles
	LinkWidthMax      int `json:"link_width_max,omitempty"`  // what GPU and slot could do
	LinkGenerationMax int `json:"link_generation_max,omitempty"`

	Has GPUFields `json:"has,omitempty"`
}

// GPUStatus says whether a GPU can be read.
type GPUStatus string

const (
	GPUWorks GPUStatus = ""     // the rest of the reading holds
	GPUHung  GPUStatus = "hung" // the driver has not answered for too long
	GPULost  GPUStatus = "lost" // the driver answers that it is gone, or no longer lists it
)

// GPUFields says which of the later fields this GPU and its driver tell. What they do not tell is zero.
type GPUFields uint16

const (
	HasMemory GPUFields = 1 << iota // MemoryUsed, MemoryTotal
	HasTemperature
	HasPower
	HasEnergy
	HasLink    // LinkWidth, LinkGeneration
	HasLinkMax // LinkWidthMax, LinkGenerationMax
	LacksBusy  // Busy is not told at present, as of a GPU that is cut into MIG slices: it stands still and means nothing
)

// GPUProcess is a process that holds memory of a GPU.
type GPUProcess struct {
	GPU    string `json:"gpu"` // GPU.ID
	PID    int    `json:"pid"` // as it is numbered in the first PID namespace
	Memory uint64 `json:"memory,omitempty"`
	Has    bool   `json:"has_memory,omitempty"` // Memory is told: some drivers name the process alone
}
