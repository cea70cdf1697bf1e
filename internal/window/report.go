package window

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

// Report is everything that is known of one window: facts and a verdict. Package explain makes sentences from it. The
// times of the ledger are sums over its GPUs: Busy + Storage + CPU + Other = Duration x the number of GPUs. Without a
// GPU the ledger divides the job's own wall clock: Busy is zero and CPU is the time on a CPU.
type Report struct {
	Window

	Scope  Scope    // the processes that the ledger accounts for
	GPUIDs []string // empty without a GPU

	Who sample.JobName // the job with a name whose window it is; zero if unknown

	Split   bool // the ledger is known
	Busy    time.Duration
	Storage time.Duration
	CPU     time.Duration
	Other   time.Duration
	Gain    time.Duration // GPU time that instant storage would have saved
	bounded bool          // Storage is less than the running sums of the ledger

	Evidence     Evidence      // "" without a ledger
	Moments      int           // at which the leading threads were looked at, of FromMoments
	NoSchedule   string        // why it is not FromSchedule, and what would change that, without a period; "" if unknown
	OtherReasons []OtherReason // the largest first, at most three; only if the Evidence is Followed
	Ready        time.Duration // part of CPU: ready for a CPU, and without one; 0 if unknown
	Network      time.Duration // part of Other: waiting for peers that serve data; only if the Evidence is Followed
	WhatIf       *WhatIf       // nil unless the Evidence is Followed
	Steps        *ledger.Steps // of an epoch; nil if they are not known

	Ledgers []GPULedger // of each GPU, if there are several

	// BusiestCore is how long the busiest core worked, if the ledger is Unattributed. It is a part of Other.
	BusiestCore time.Duration

	Verdict     Verdict
	Missing     []Missing // what the report lacks
	Uncertainty float64   // half the width of the widest part of the ledger, as a share of the window's GPU time
	Speedup     float64   // with instant storage, or of NetworkBound with peers that send at once; 0 if unknown
	SpeedupLow  float64   // its range; 0 if unknown
	SpeedupHigh float64   // 0 if only SpeedupLow is known
	Interrupted bool      // a counter restarted, a device was added or removed, or readings are missing
	FromMemory  bool      // a load of data in memory, which cannot have waited for storage

	Slow       bool
	SlowReason string        // one of the registry's stallspan.slowness.reason
	SlowAfter  time.Duration // of the window, when it became slow by its duration; 0 if it did not
	Limit      time.Duration // the configured limit that the window was compared with; 0 without one
	Baseline   *Baseline     // how long such windows usually take; nil if unknown

	Uses     []GPUUse  // of the GPUs that report more than their busy time
	Findings []Finding // facts about GPUs and disks besides the verdict
	pending  []Finding // facts about disks that count only if the window is slow

	Own          *OwnIO        // what the job moved; nil if unknown
	Disks        []DiskUse     // leaf disks with I/O in the window: first those under its path, then by bytes moved
	SlowDevice   *SlowDevice   // the one that explains the wait for storage; nil without such a wait, or if none does
	NoDevice     bool          // there was a wait for storage, and no device of this machine explains it
	From         []string      // the disks that the window can have read from
	Others       int           // other windows that read from one of these at the same time
	OthersByDisk []int         // the same for each disk of From
	Pressure     *Pressure     // nil on a kernel without PSI
	Starved      time.Duration // a process of the job's own cgroup was ready and had no CPU
	Mounts       []sample.Mount
	MountUses    []MountUse // of the Mounts that the kernel counts: first that on which operations took longest
	Fetch        *Fetch     // how the job read from its Mounts; nil if unknown
	Peers        []PeerUse  // over TCP: those that were waited for longest first, at most eight
	Load         Load       // of a model load
	CPUUsed      float64    // share of the time of all cores with work of any process; 0 if unknown
	CPUOthers    float64    // cores on which others than the window's job worked, on average; 0 if unknown
	Cores        int        // of the machine; 0 if unknown
	Storms       []Storm    // I/O storms that were detected as this window ended

	Stalls     []Stall
	StallBegan time.Duration // first wait for storage, monotonic; zero without one

	PhaseReports []*Report // of Window.Phases, in their order: the ledger of each

	Recent *Report // the last RecentTime of a longer window that is still open
}

// OwnIO is what a window's job read from storage and wrote, in bytes. Other programs have no part in it.
type OwnIO struct{ Read, Written uint64 }

// DiskUse is what one disk did in a window. Operations count when they complete.
type DiskUse struct {
	Name            string
	ReadBytes       uint64
	ReadOperations  uint64
	ReadTime        time.Duration // sum over operations
	WriteBytes      uint64
	WriteOperations uint64
	WriteTime       time.Duration
	QueueDepth      float64       // mean number of operations in flight
	BusyRatio       float64       // utilization; on a parallel device it is not a measure of load
	Lacks           sample.Fields // the values above that are not known, because the kernel's counters cannot be true
	Under           bool          // the window's path is on this disk
	Partial         bool          // counters restarted, or the disk was added or removed: the numbers cover a part of it

	// nil if they are not counted, as of a device that is made of others.
	ReadLatency, WriteLatency *Latency

	// Highest throughput over about a second until now, in bytes per second; 0 if unknown.
	ReadCeiling, WriteCeiling float64

	// Mean throughput in the window as a share of the ceiling: of the one before the window, which the window itself
	// cannot have raised, and for reads of the present one. 0 if unknown, as after a window that was clearly faster.
	ReadCeilingRatio, WriteCeilingRatio float64
	ReadCeilingRatioNow                 float64

	// ReadFullRatio is the same of the highest throughput that the disk reached before with a queue of reads, or was
	// measured to reach. What one reader at a time gets from a disk does not show what the disk can do.
	ReadFullRatio float64
}

// NearCeiling reports whether the disk read nearly as fast as it ever had before the window, and as with a queue.
func (d *DiskUse) NearCeiling() bool {
	return d.ReadCeilingRatio >= NearCeiling && d.ReadFullRatio >= NearCeiling
}

// FarFromCeiling reports whether the disk can read much faster than it did.
func (d *DiskUse) FarFromCeiling() bool {
	return d.ReadCeilingRatioNow > 0 && d.ReadCeilingRatioNow <= FarCeiling
}

// Storm is a time in which several slow windows read from one disk.
type Storm struct {
	Disk    string
	Windows int           // that read from it at that time, slow or not
	Since   time.Duration // since two of them were slow
}

// Pressure is the I/O pressure of the window's scope.
type Pressure struct{ Some, Full time.Duration }

// GPUTime is the time that the ledger divides: the duration, once for each GPU.
func (r *Report) GPUTime() time.Duration {
	return r.Duration() * time.Duration(max(1, len(r.GPUIDs)))
}

// Unattributed reports whether the CPU time of the ledger is of no particular program: there is neither a GPU nor a
// job. It counts as other.
func (r *Report) Unattributed() bool { return r.Scope == Host && len(r.GPUIDs) == 0 }

// BusyRatio is the share of the window's GPU time in which a GPU worked.
func (r *Report) BusyRatio() float64 {
	if total := r.GPUTime(); total > 0 {
		return r.Busy.Seconds() / total.Seconds()
	}
	return 0
}

// StallKnown reports whether it is known what the time was lost to, besides what worked.
func (r *Report) StallKnown() bool { return !r.Lacks(HiddenReads) }

// Shares returns the parts of the ledger as shares of its time. The CPU share of an Unattributed ledger is that of the
// busiest core.
func (r *Report) Shares() Shares {
	total := r.GPUTime().Seconds()
	if total <= 0 {
		return Shares{}
	}
	return Shares{
		Busy:    r.Busy.Seconds() / total,
		Storage: r.Storage.Seconds() / total,
		CPU:     (r.CPU + r.BusiestCore).Seconds() / total,
		Other:   (r.Other - r.BusiestCore).Seconds() / total,
		Network: r.Network.Seconds() / total,
		Ready:   r.Ready.Seconds() / total,
	}
}

// Wall converts a monotonic time to wall time. It counts from the start of the window, so that a step of the wall clock
// within the window moves nothing.
func (r *Report) Wall(mono time.Duration) time.Time { return r.Start.Wall.Add(mono - r.Start.Mono) }

// OthersOn is how many other windows read from a disk of From at the same time.
func (r *Report) OthersOn(disk string) int {
	if i := slices.Index(r.From, disk); i >= 0 && i < len(r.OthersByDisk) {
		return r.OthersByDisk[i]
	}
	return 0
}

// BytesRead is how much the disks read, for any process.
func (r *Report) BytesRead() (bytes uint64) {
	for i := range r.Disks {
		bytes += r.Disks[i].ReadBytes
	}
	return bytes
}

// BytesReadFrom is how much the disks read from which the window can have read, for any process; of all disks if these
// are not known.
func (r *Report) BytesReadFrom() (bytes uint64) {
	for i := range r.Disks {
		if slices.Contains(r.From, r.Disks[i].Name) {
			bytes += r.Disks[i].ReadBytes
		}
	}
	if len(r.From) == 0 {
		return r.BytesRead()
	}
	return bytes
}

// CanHaveRead reports whether the disks read enough for a process with that many bytes in its counters.
func (r *Report) CanHaveRead(bytes uint64) bool {
	return float64(bytes) <= maxRead*float64(r.BytesRead())
}
