package window

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

// Report is everything that is known about one window. Times of the ledger are summed over its GPUs: Busy + Storage +
// CPU + Other = Duration x the number of GPUs. Without a GPU it splits the job's own wall clock, Busy is zero and CPU
// is the time on the processor.
type Report struct {
	Window

	Scope   Scope    // whose time is split
	GPUIDs  []string // empty where no GPU is in sight
	Busy    time.Duration
	Storage time.Duration
	CPU     time.Duration
	Other   time.Duration
	Split   bool          // the ledger above is known; without it, nothing was
	Gain    time.Duration // of GPU time, what would not have passed had storage been instant

	Verdict Verdict
	Finding string // one sentence
	Remedy  string // one sentence

	Uses     []GPUUse  // of the GPUs that tell more than how long they were busy
	Findings []Finding // what was seen of them, and is known of its disks, beside the verdict
	ill      []Finding // of its disks, while it is not known whether that is worth telling

	Slow       bool
	SlowReason string    // of the registry's stallspan.slowness.reason
	Baseline   *Baseline // how long windows like it take here; nil where that is not known, and in a recording
	Speedup    float64   // what a perfect disk would give at most; 0 where it is not known

	Disks    []DiskUse     // leaf disks that did I/O in the window: those under its path first, then by how much they moved
	From     []string      // those of them that it can have read from itself
	Others   int           // other windows that read from one of those meanwhile
	others   []int         // and from each of those
	Pressure *Pressure     // nil on a kernel without PSI
	Starved  time.Duration // somebody in the job's own cgroup was ready and found no CPU free
	Mounts   []sample.Mount
	Stalls   []Stall
	Load     Load    // of a model load
	CPUUsed  float64 // share of all cores' time in which they worked, by anyone; 0 where that is not known
	Storms   []Storm // that began as this window ended

	Recent *Recent // of a window that goes on; nil of one that ended or is not longer than RecentTime

	StallBegan time.Duration // when the window first waited for storage, monotonic; zero where it did not

	Uncertainty float64  // half the width of the widest part of the ledger, as a share of the window's GPU time
	unread      string   // a GPU that could not be read for a part of the window, or ""
	gap         bool     // for much of the window nothing was read
	waitless    bool     // it cannot have waited for storage
	unpressed   bool     // the kernel tells no I/O pressure
	torn        []string // disks whose counters began again, or that came or left, in the window

	Interrupted bool // a counter began again, a device came or left, or nothing was read for a time: the numbers are what was seen
}

// DiskUse is what one disk did in a window. Whole operations are counted when they complete.
type DiskUse struct {
	Name            string
	ReadBytes       uint64
	ReadOperations  uint64
	ReadTime        time.Duration // summed over operations
	WriteBytes      uint64
	WriteOperations uint64
	WriteTime       time.Duration
	QueueDepth      float64 // mean number of operations under way
	BusyRatio       float64 // share of the time with at least one under way; says little on a parallel device
	Under           bool    // the window's path lies on it
	ReadCeiling     float64 // the highest throughput that was seen so far over about a second, in bytes a second; 0: none
	WriteCeiling    float64
}

// Storm is when several slow windows read from one disk at once.
type Storm struct {
	Disk    string
	Windows int           // that read from it then, slow or not
	Since   time.Duration // when two slow ones first did
}

// Pressure is the I/O pressure of the window's scope.
type Pressure struct{ Some, Full time.Duration }

// Machine is what a report needs to know of the machine besides its history.
type Machine struct {
	Leaves   []string       // leaf disks
	GPUs     []string       // hw.id of every GPU that can be read
	Lost     []string       // and of those that could be when the window began
	Held     []string       // of those that the window's job has held memory of; empty where that is not known
	Target   ledger.Target  // of the window's job, without a GPU
	Scope    Scope          // what that job is; "" for the whole machine
	Mounts   []sample.Mount // without a disk of this machine, on which the job has had files open
	Pressure bool           // the kernel tells I/O pressure
	Unseen   bool           // what the job reads and writes cannot be told, and by that alone could its waiting be told from others'
	Silent   bool           // what the job reads cannot be told

	Ceilings []sample.Ceiling // of the disks, as they are learned now
	Drives   []sample.Drive   // judged, the worst first; nothing of them is kept but their sentences
	Cores    int              // logical CPUs; 0 where that is not known
	Others   func() []Other   // windows that may have read meanwhile; nil where there are none. Asked where the window read from a disk
	Readers  []Reader         // processes that did
}

// Make reports on w, from w.Start to w.End. It only reads h, and any number of reports may be made at once.
func Make(h *history.History, w *Window, m Machine) *Report {
	r := &Report{Window: *w, Scope: cmp.Or(m.Scope, Host), GPUIDs: w.GPUs}
	if len(r.GPUIDs) == 0 {
		r.GPUIDs = r.inUse(h, slices.Concat(m.GPUs, m.Lost), m.Held)
	}
	r.disks(h, m)
	r.pressure(h, m)
	r.ledger(h, m)
	r.mounts(h, m)
	r.ceilings(m)
	r.From = r.readFrom(h, m)
	if m.Others != nil && len(r.From) > 0 {
		r.beside(m.Others())
	}
	r.load(h, m)
	r.cores(h, m)
	r.memoryWaitsForNothing(h, m)
	r.judge(h, m)
	r.uses(h, m)
	r.further(h)
	r.failing(m.Drives)
	r.stalls(h, m.Target.Job)
	return r
}

// inUse leaves out the GPUs that others use, where it is known which the job does, and those that did nothing in the
// window: a job that was given two and uses one does not wait for the other. When none did anything, all are meant.
func (r *Report) inUse(h *history.History, gpus, held []string) []string {
	own := slices.DeleteFunc(slices.Clone(gpus), func(id string) bool { return !slices.Contains(held, id) })
	if len(own) > 0 {
		gpus = own
	}
	var used []string
	for _, id := range gpus {
		if d, ok := h.Between(history.Key{Series: history.GPUBusyTime, ID: id}, r.from(), r.to()); ok && d.Value > 0 {
			used = append(used, id)
		}
	}
	if len(used) == 0 {
		return gpus
	}
	return used
}

// GPUTime is the time that the ledger splits: the duration, once for each GPU.
func (r *Report) GPUTime() time.Duration {
	return r.Duration() * time.Duration(max(1, len(r.GPUIDs)))
}

func (r *Report) ledger(h *history.History, m Machine) {
	gpus := r.GPUIDs
	if len(gpus) == 0 {
		gpus = []string{""}
	}
	var widest float64
	for _, gpu := range gpus {
		d, _ := h.Between(history.Key{Series: history.GPUBusyTime, ID: gpu}, r.from(), r.to())
		if d.Reset || slices.Contains(m.Lost, gpu) {
			r.unread = gpu
		}
		var parts [3]history.Delta
		if !h.BetweenAll(history.LedgerBusy, ledger.ID(m.Target.Job, gpu), r.from(), r.to(), parts[:]) {
			return
		}
		gain, known := h.Between(history.Key{Series: history.LedgerGain, ID: ledger.ID(m.Target.Job, gpu)}, r.from(), r.to())
		if !known { // older than it is kept for
			gain = parts[1]
		}
		r.Gain += seconds(gain.Value)
		for i, part := range [...]*time.Duration{&r.Busy, &r.Storage, &r.CPU} {
			*part += seconds(parts[i].Value)
			r.Interrupted = r.Interrupted || parts[i].Reset
			widest = max(widest, (parts[i].High-parts[i].Low)/2)
		}
	}
	if m.Target.Job != "" && !m.Target.Own {
		widest = max(widest, cpuTick.Seconds()) // at either end
	}
	if last, ok := h.Last(history.GPUBusyTime); ok && h.Lags(r.to()) {
		widest = max(widest, (r.End.Mono-last).Seconds()/2) // what the GPU did since is not known yet
	}
	r.Split = true
	total := r.GPUTime()
	if sum := r.Busy + r.Storage + r.CPU; sum > total {
		// The sources are read microseconds apart; what that adds at the edges is taken back in proportion.
		scale := float64(total) / float64(sum)
		r.Busy = time.Duration(float64(r.Busy) * scale)
		r.Storage = time.Duration(float64(r.Storage) * scale)
		r.CPU = min(time.Duration(float64(r.CPU)*scale), total-r.Busy-r.Storage)
	}
	r.Other = total - r.Busy - r.Storage - r.CPU
	r.Gain = min(r.Gain, total-r.Busy)
	if total > 0 {
		r.Uncertainty = min(1, widest/total.Seconds()*float64(len(gpus)))
	}
}

func (r *Report) disks(h *history.History, m Machine) {
	window := r.Duration().Seconds()
	for _, name := range m.Leaves {
		var all [history.DiskTimeInQueue + 1]history.Delta
		known := h.BetweenAll(history.DiskReadIOs, name, r.from(), r.to(), all[:])
		torn := false
		get := func(s history.Series) float64 {
			torn = torn || all[s].Reset
			return all[s].Value
		}
		use := DiskUse{
			Name:            name,
			Under:           slices.Contains(r.Seen.Under, name),
			ReadBytes:       uint64(get(history.DiskReadBytes)),
			ReadOperations:  uint64(get(history.DiskReadIOs)),
			ReadTime:        seconds(get(history.DiskReadTicks)),
			WriteBytes:      uint64(get(history.DiskWriteBytes)),
			WriteOperations: uint64(get(history.DiskWriteIOs)),
			WriteTime:       seconds(get(history.DiskWriteTicks)),
		}
		weighted, busy := get(history.DiskTimeInQueue), get(history.DiskIOTicks)
		if torn {
			r.Interrupted, r.torn = true, append(r.torn, name)
		}
		if !known || use.ReadOperations+use.WriteOperations == 0 {
			continue
		}
		if window > 0 {
			use.QueueDepth, use.BusyRatio = sample.QueueDepth(weighted, window), sample.Utilization(busy, window)
		}
		r.Disks = append(r.Disks, use)
	}
	slices.SortStableFunc(r.Disks, func(a, b DiskUse) int {
		switch {
		case a.Under != b.Under:
			if a.Under {
				return -1
			}
			return 1
		case a.ReadBytes+a.WriteBytes > b.ReadBytes+b.WriteBytes:
			return -1
		case a.ReadBytes+a.WriteBytes < b.ReadBytes+b.WriteBytes:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
}

func (r *Report) pressure(h *history.History, m Machine) {
	some, okSome := h.Between(history.Key{Series: history.IOSome, ID: m.Target.Pressure}, r.from(), r.to())
	full, okFull := h.Between(history.Key{Series: history.IOFull, ID: m.Target.Pressure}, r.from(), r.to())
	if okSome && okFull {
		r.Pressure = &Pressure{seconds(some.Value), seconds(full.Value)}
	}
	if m.Target.Own {
		starved, _ := h.Between(history.Key{Series: history.CPUSome, ID: m.Target.Pressure}, r.from(), r.to())
		r.Starved = seconds(starved.Value)
	}
}

// cpuTick is in what the kernel counts a process's CPU time (USER_HZ = 100); that of a cgroup is exact.
const cpuTick = 10 * time.Millisecond

// filesSeen is how old the last look at the files of a process may be that does nothing, as one that hangs in a read.
const filesSeen = 6 * time.Second

// mounts keeps those that were in use during the window. When next to nothing of what the disks did can have been for
// the job, it was the mounts that it waited for, and the disks are left out. FUSE counts nothing as fetched by the job;
// some network file systems count what they fetch as if it came from a disk, and then the disks read far less.
func (r *Report) mounts(h *history.History, m Machine) {
	for _, mount := range m.Mounts {
		if mount.LastSeen >= r.Start.Mono-filesSeen {
			r.Mounts = append(r.Mounts, mount)
		}
	}
	fetched, known := h.Between(history.Key{Series: history.JobReadBytes, ID: m.Target.Job}, r.from(), r.to())
	stored, _ := h.Between(history.Key{Series: history.JobWriteBytes, ID: m.Target.Job}, r.from(), r.to())
	if len(r.Mounts) == 0 || !known {
		return
	}
	var read, moved float64
	for i := range r.Disks {
		read += float64(r.Disks[i].ReadBytes)
		moved += float64(r.Disks[i].ReadBytes + r.Disks[i].WriteBytes)
	}
	if fetched.Value+stored.Value < moved/10 || fetched.Value > 2*read {
		r.Disks = nil
	}
}
