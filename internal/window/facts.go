package window

import (
	"os"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

// Facts are what was counted in a window. Nothing in them is a judgement.
type Facts struct {
	Scope  Scope    // the processes that the ledger accounts for
	GPUIDs []string // empty without a GPU

	Own       *OwnIO        // what the job moved; nil if unknown
	Disks     []DiskUse     // leaf disks with I/O in the window: first those under its path, then by bytes moved
	From      []string      // the disks that the window can have read from
	Pressure  *Pressure     // nil on a kernel without PSI
	Starved   time.Duration // a process of the job's own cgroup was ready and had no CPU
	Mounts    []sample.Mount
	MountUses []MountUse // of the Mounts that the kernel counts: first that on which operations took longest
	Fetch     *Fetch     // how the job read from its Mounts; nil if unknown
	Load      Load       // of a model load
	Squeezed  *Squeezed  // by the limit of its memory; nil if that cost next to nothing
	Bypass    *Bypass    // of the page cache; nil if it kept what the job read, or if that is not known
	Faults    *Faults    // of a load; nil if they cost next to nothing
	CPUUsed   float64    // share of the time of all cores with work of any process; 0 if unknown
	CPUOthers float64    // cores on which others than the window's job worked, on average; 0 if unknown
	Cores     int        // of the machine; 0 if unknown

	Uses  []GPUUse      // of the GPUs that report more than their busy time
	Steps *ledger.Steps // of an epoch; nil if they are not known

	opened []string           // view.open
	layers map[string]DiskUse // devices above the disks with I/O in the window, by name
	reset  []string           // disks of the window that were added or removed in it, or whose counters restarted
	torn   bool               // a counter of some disk restarted
}

// OwnIO is what a window's job read from storage and wrote, in bytes. Other programs have no part in it.
type OwnIO struct {
	Read    uint64 `json:"read_bytes"`
	Written uint64 `json:"write_bytes"`
}

// Pressure is the I/O pressure of the window's scope.
type Pressure struct{ Some, Full time.Duration }

// gather is the first stage.
func gather(v *view) Facts {
	disks, reset := v.disks()
	mounts := v.mounts()
	uses := v.mountUses(mounts)
	if v.leavesDisks(disks, mounts) {
		disks = nil
	}
	v.addCeilings(disks)
	for i := range disks {
		v.addLatency(&disks[i])
	}
	f := Facts{
		Scope: v.scope(), GPUIDs: v.gpus(), Own: v.own(), Disks: disks, From: v.readFrom(disks),
		Mounts: busiestFirst(mounts, uses), MountUses: uses, layers: v.layersInUse(), torn: len(reset) > 0, opened: v.open(),
	}
	for _, disk := range reset {
		if f.worksWith(disk, v.Seen.Under) {
			f.reset = append(f.reset, disk)
		}
	}
	f.Pressure, f.Starved = v.pressure()
	f.CPUUsed, f.CPUOthers, f.Cores = v.cores()
	f.Load, f.Fetch, f.Uses = v.load(&f), v.calls(&f), v.uses(f.GPUIDs)
	f.Squeezed, f.Bypass, f.Faults = v.squeezed(), v.bypass(), v.faults()
	if v.Kind == Epoch {
		f.Steps = v.machine.Steps
	}
	return f
}

// ledgers lists the GPUs with ledgers; a single "" without a GPU.
func (f *Facts) ledgers() []string {
	if len(f.GPUIDs) == 0 {
		return []string{""}
	}
	return f.GPUIDs
}

func (v *view) own() *OwnIO {
	read, known := v.fetched()
	written, ok := v.between(history.JobWriteBytes, v.machine.Target.Job)
	if !known || !ok || written.Reset {
		return nil
	}
	return &OwnIO{uint64(read), uint64(written.Value)}
}

func (v *view) pressure() (io *Pressure, starved time.Duration) {
	target := &v.machine.Target
	some, okSome := v.between(history.IOSome, target.Pressure)
	full, okFull := v.between(history.IOFull, target.Pressure)
	if okSome && okFull && !some.Reset {
		io = &Pressure{seconds(some.Value), seconds(full.Value)}
	}
	if target.Own {
		waited, _ := v.between(history.CPUSome, target.Pressure)
		starved = seconds(waited.Value)
	}
	return io, starved
}

// cores returns the share of the time of all cores in which they worked, and on how many of them others did.
func (v *view) cores() (used, others float64, cores int) {
	worked, ok := v.between(history.HostCPUTime, "")
	length := v.Duration().Seconds()
	total := length * float64(v.machine.Cores)
	if !ok || total <= 0 {
		return 0, 0, 0
	}
	if own, known := v.between(history.JobCPUTime, v.machine.Target.Job); known && v.machine.Target.Job != "" {
		others = max(0, worked.Value-own.Value) / length
	}
	return min(1, worked.Value/total), others, v.machine.Cores
}

// layersInUse returns what the devices above the disks did.
func (v *view) layersInUse() map[string]DiskUse {
	all := map[string]DiskUse{}
	for _, layer := range v.machine.Layers {
		use, known := v.diskUse(history.LayerReadIOs, layer.Name)
		if known && use.ReadOperations+use.WriteOperations > 0 {
			v.addLatency(&use)
			all[layer.Name] = use
		}
	}
	return all
}

// BytesReadFrom is how much the disks read from which the window can have read, for any process; of all disks if these
// are not known.
func (f *Facts) BytesReadFrom() (bytes uint64) {
	for i := range f.Disks {
		if d := &f.Disks[i]; len(f.From) == 0 || slices.Contains(f.From, d.Name) {
			bytes += d.ReadBytes
		}
	}
	return bytes
}

// CanHaveRead reports whether the disks read enough for a process with that many bytes in its counters.
func (f *Facts) CanHaveRead(bytes uint64) bool {
	read := 0.0
	for i := range f.Disks {
		read += float64(f.Disks[i].ReadBytes)
	}
	return float64(bytes) <= maxRead*read
}

// Squeezed is what a limit of memory cost a window: files were dropped from the page cache and read again.
type Squeezed struct {
	sample.MemoryLimit
	Again uint64 // bytes read again in the window
}

// squeezed returns it if that is much of what the job fetched.
func (v *view) squeezed() *Squeezed {
	m := v.machine.Memory
	again, known := v.between(history.JobRefaulted, v.machine.Target.Job)
	fetched, ok := v.fetched()
	if m.Limit == 0 || !known || !ok || again.Value <= 0 || again.Value < muchAgain*fetched {
		return nil
	}
	return &Squeezed{m, uint64(again.Value)}
}

// Bypass is what a job read from storage and the page cache did not keep, although memory was not short: the program
// reads past it, or something dropped all of it. That a program drops single files has no counter.
type Bypass struct {
	Read, Gone uint64 // bytes: all, and those that did not stay
	Dropped    bool   // it was dropped as a whole meanwhile (drop_caches); else the job had files open past it (O_DIRECT)
}

// bypass returns it if most is gone that would have had room.
func (v *view) bypass() *Bypass {
	m := v.machine
	kept, known := v.between(history.JobKept, m.Target.Job)
	drops, _ := v.between(history.JobDrops, m.Target.Job)
	fetched, ok := v.fetched()
	gone := fetched - max(0, kept.Value)
	past := m.Direct > 0 && m.Direct >= v.Start.Mono || drops.Value > 0
	hadRoom := float64(m.Memory.Free) >= fetched
	if !m.PageCache || !known || !ok || !past || !hadRoom || gone < max(minGone, muchGone*fetched) {
		return nil
	}
	return &Bypass{uint64(fetched), uint64(gone), drops.Value > 0}
}

// Faults are the page faults by which a load took its data from memory: it maps its file. Those of the memory that it
// fills count, too.
type Faults struct {
	Count  uint64
	Kernel time.Duration // CPU time of the job in the kernel, which has nothing else of weight to do
	Share  float64       // of Kernel in the CPU time of the job
}

// faults returns them if read calls brought little of the data, and the kernel's work is much of the job's.
func (v *view) faults() *Faults {
	if v.Kind != ModelLoad {
		return nil
	}
	of := func(s history.Series) float64 { d, _ := v.between(s, v.machine.Target.Job); return d.Value }
	fetched, known := v.fetched()
	count, kernel, cpu := of(history.JobFaults), of(history.JobSystemTime), of(history.JobCPUTime)
	brought := MappedShare * count * float64(os.Getpagesize())
	if !known || kernel < minKernel.Seconds() || kernel < muchKernel*cpu || kernel > maxFault.Seconds()*count ||
		max(fetched, of(history.JobReadChars)) >= brought {
		return nil
	}
	return &Faults{uint64(count), seconds(kernel), min(1, kernel/cpu)}
}
