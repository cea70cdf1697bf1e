package window

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stallspan/stallspan/internal/history"
)

// Limits of the remedies.
const (
	deepQueue = 2.0  // mean operations under way, from which a disk has more to do than one reader asks of it
	coresFull = 0.9  // share of all cores' time from which on no core is free
	warmLoad  = 0.95 // share of a load that came from memory, from which on storage has nothing to do with it
)

// advice is one line of the table below. docs/verdicts.md has the same lines; a test walks them.
type advice struct {
	Name string
	when func(*situation) bool
	say  func(*situation) string
}

// situation is what a remedy follows from.
type situation struct {
	r *Report
	s shares
	m Machine

	disk      DiskUse // that it read from: under its path, or the one that moved most; zero without any
	near, far bool    // that disk, from its ceiling
	torn      bool    // a disk that it worked with was seen for a part of the window alone, so these and deep are not known
	storage   bool    // storage is what to look at first
	cpu       bool    // the CPU work is
	deep      bool
	gain      string
}

// remedies in the order in which they are looked through: the first that fits is given.
var remedies = [...]advice{
	{"announce", func(x *situation) bool {
		return x.r.Unattributed() && !x.storage && x.m.Pressure
	}, always("Announce the window, or name process.pid on its spans: from the second one on the program's own time is split.")},
	{"nothing to gain", func(x *situation) bool { return x.r.Verdict == GPUBound },
		always("Nothing to gain from storage or the input pipeline: a faster GPU or a cheaper model is what would help.")},
	{"nothing to gain", func(x *situation) bool { return x.warm() && !x.storage },
		always("Nothing to gain from storage: the model came from memory already.")},
	{"write elsewhere", func(x *situation) bool {
		return x.storage && x.r.Kind != ModelLoad && x.disk.WriteBytes > x.disk.ReadBytes
	},
		gaining("Write in the background or to a faster disk: ")},
	{"stagger the starts", func(x *situation) bool { return x.storage && x.r.Others > 0 }, (*situation).stagger},
	{"raise workers or prefetch", func(x *situation) bool { return x.storage && !x.torn && !x.deep && !x.near && x.far }, (*situation).ask},
	{"keep it in memory", func(x *situation) bool { return x.storage && x.r.Kind == ModelLoad }, (*situation).keep},
	{"raise workers or prefetch", func(x *situation) bool { return x.storage && x.disk.Name != "" && !x.torn && !x.deep && !x.near },
		gaining("Read ahead with more workers, or keep the data in memory: ")},
	{"faster storage", func(x *situation) bool { return x.storage }, (*situation).faster},
	{"more cores", func(x *situation) bool { return x.cpu && len(x.r.GPUIDs) == 0 },
		always("Storage is not the limit: spread the work over more cores, or do less of it.")},
	{"decode less", func(x *situation) bool { return x.cpu && x.full() },
		always("No core is free: decode less, cache decoded samples, or move the work to more cores.")},
	{"raise workers", func(x *situation) bool { return x.cpu },
		always("Give the input pipeline more workers, or cache decoded samples.")},
	{"free the cores", func(x *situation) bool {
		return x.s.other >= Thresholds.Other && x.r.Starved.Seconds() >= x.s.other/2*x.r.Duration().Seconds()
	}, always("Something else on this machine takes the CPUs: stop it, or give this program cores of its own.")},
	{"boot with psi=1", func(x *situation) bool { return !x.m.Pressure },
		always("This kernel tells no I/O pressure: boot with psi=1 to see what tasks wait for.")},
	{"look elsewhere", func(*situation) bool { return true },
		always("Look at what neither disk nor CPU shows: synchronisation, the network, warm-up.")},
}

func always(text string) func(*situation) string { return func(*situation) string { return text } }

func gaining(text string) func(*situation) string {
	return func(x *situation) string { return text + x.gain }
}

// remedy says in one sentence what to try.
func (r *Report) remedy(s shares, m Machine) string {
	x := r.situation(s, m)
	return x.advice().say(x)
}

func (x *situation) advice() *advice {
	i := 0
	for !remedies[i].when(x) { // the last one always fits
		i++
	}
	return &remedies[i]
}

func (r *Report) situation(s shares, m Machine) *situation {
	x := &situation{r: r, s: s, m: m}
	if len(r.Disks) > 0 {
		x.disk = r.Disks[max(0, slices.IndexFunc(r.Disks, func(d DiskUse) bool { return slices.Contains(r.From, d.Name) }))]
		x.near, x.far = r.pace(&x.disk)
		x.deep = x.disk.QueueDepth >= deepQueue
		x.torn = len(r.tornDisks()) > 0
	}
	computing := r.Verdict == Mixed && s.cpu > s.storage && len(r.GPUIDs) > 0
	x.storage = r.Verdict == StorageBound || r.Verdict == Mixed && !computing
	x.cpu = r.Verdict == CPUBound || computing
	x.gain = fmt.Sprintf("at most %.1fx faster.", r.Speedup)
	if r.Speedup == 0 || r.Speedup >= 10 {
		x.gain = "nearly all of its time was waiting."
	}
	return x
}

// warm says that a load came from memory.
func (x *situation) warm() bool {
	l := &x.r.Load
	return x.r.Kind == ModelLoad && l.HasHit && l.Hit >= warmLoad && x.s.storage < Thresholds.Stall
}

// full says that more workers would find no core.
func (x *situation) full() bool {
	return x.r.CPUUsed >= coresFull || x.r.Starved.Seconds() >= Thresholds.Stall*x.r.Duration().Seconds() && x.r.Starved > 0
}

func (x *situation) stagger() string {
	disk := slices.MaxFunc(x.r.From, func(a, b string) int { return cmp.Compare(x.r.OthersOn(a), x.r.OthersOn(b)) })
	others, read := "another window", "reads"
	if n := x.r.OthersOn(disk); n > 1 {
		others, read = fmt.Sprintf("%d other windows", n), "read"
	}
	how := "Stagger the starts"
	if x.r.Kind != ModelLoad {
		how = "Stagger the jobs, or keep the data in memory"
	}
	return fmt.Sprintf("%s: %s %s from %s at the same time; without any waiting, %s", how, others, read, disk, x.gain)
}

func (x *situation) ask() string {
	how := "Read ahead with more workers"
	if x.r.Kind == ModelLoad {
		how = "Read the model ahead, or in several pieces at once"
	}
	return fmt.Sprintf("%s: %s read %s/s, and can read at least %s/s; %s", how, x.disk.Name,
		size(x.r.speed(x.disk.ReadBytes)), size(uint64(x.disk.ReadCeiling)), x.gain)
}

func (x *situation) keep() string {
	return "Keep the model's file in memory (page cache or tmpfs) or move it to a faster disk" + x.limit() + ": " + x.gain
}

func (x *situation) faster() string {
	return "Keep the data in memory or move it to faster storage" + x.limit() + ": " + x.gain
}

// limit says that the disk does what it can, as far as that was seen.
func (x *situation) limit() string {
	if !x.near {
		return ""
	}
	return fmt.Sprintf(", for %s read %s/s and was never seen to read much more", x.disk.Name, size(x.r.speed(x.disk.ReadBytes)))
}

// speed is a mean throughput in the window, in bytes a second.
func (r *Report) speed(bytes uint64) uint64 {
	seconds := r.Duration().Seconds()
	if seconds <= 0 {
		return 0
	}
	return uint64(float64(bytes) / seconds)
}

// cores sees how much of all cores' time was spent working.
func (r *Report) cores(h *history.History, m Machine) {
	worked, ok := h.Between(history.Key{Series: history.HostCPUTime}, r.from(), r.to())
	if total := r.Duration().Seconds() * float64(m.Cores); ok && total > 0 {
		r.CPUUsed = min(1, worked.Value/total)
	}
}
