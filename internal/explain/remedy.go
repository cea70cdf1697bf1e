package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Limits of the remedies.
const (
	deepQueue = 2.0  // queue depth from which a disk has more to do than one reader requests
	coresFull = 0.9  // share of the time of all cores from which no core is free
	someCores = 0.5  // cores that other programs use, from which on they are named
	warmLoad  = 0.95 // share of a load from memory from which storage does not matter
	coldLoad  = 0.5  // share of a load from memory below which it is cold
	fewSMs    = 0.5  // share of a GPU's busy time in which its SMs have work, below which it waits in kernels
	lateShare = 0.1  // share of the window that it would be shorter without storage, beyond its storage stall, that counts
)

// Remedy returns one sentence that says what to try; "" for a window that is too short for any.
func Remedy(r *window.Report) string {
	if r.Failed && (r.Silence == nil || !r.Silence.Goes) {
		return "" // a faster one would fail, too
	}
	if m, ok := blocking(r); ok {
		if m.Reason == window.TooShort && r.Duration() < window.MinJudged {
			return "" // to make an epoch longer is no advice
		}
		return unjudgedRemedies[m.Reason]
	}
	x := newSituation(r)
	return x.advice().text(x)
}

// Advice names what a remedy says, without the numbers of its window: windows with the same one need it once. "" is a
// window without a remedy.
func Advice(r *window.Report) string {
	if Remedy(r) == "" {
		return ""
	}
	if m, ok := blocking(r); ok {
		return string(m.Reason)
	}
	kind, _ := r.MainReason()
	return fmt.Sprint(newSituation(r).index(), " ", kind)
}

// advice is one line of the table below. docs/verdicts.md has the same lines; a test compares.
type advice struct {
	Name string
	when func(*situation) bool
	text func(*situation) string
}

// situation is what a remedy follows from.
type situation struct {
	*window.Report
	shares window.Shares

	// disk is what the window read from: under its path, or the one that moved most; zero without one.
	disk      window.DiskUse
	reset     bool   // the counters of such a disk cover a part of the window, so its rates and queue are not known
	shallow   bool   // its queue is known, and not deep
	storage   bool   // storage is what to improve first
	cpu       bool   // CPU work is
	gain      string // without waiting: "about 3.0x faster (2.6 to 3.4)", or that nearly all time was waiting
	predicted bool   // gain is a prediction

	pacer *window.GPULedger // the GPU that the others cannot outrun; nil without one
}

// remedies are in order of precedence: the first that fits counts.
var remedies = [...]advice{
	{"name the process", func(x *situation) bool { return x.Lacks(window.ClientGone) && x.Verdict == window.Unknown },
		always("Announce it with the pid of the program that does the work.")},
	{"announce", func(x *situation) bool {
		return x.Unattributed() && !x.storage && !x.Lacks(window.NoIOPressure)
	}, always("Announce it with a pid, or set process.pid on its span: then " +
		"the program's own time is divided.")},
	{"find why nothing answers", func(x *situation) bool { return x.Silence != nil }, (*situation).findSilent},
	{"nothing to gain", func(x *situation) bool { return x.Verdict == window.GPUBound }, (*situation).fasterGPU},
	{"look at the busiest GPU", func(x *situation) bool { return x.pacer != nil && !x.storage && !x.cpu },
		(*situation).lookAtPacer},
	{"read instead of mapping", func(x *situation) bool { return x.cpu && x.Faults != nil }, (*situation).readCalls},
	{"nothing to gain", func(x *situation) bool { return x.warm() && !x.storage },
		always("Storage leaves nothing to gain: the model came from memory.")},
	{"look at the local server", func(x *situation) bool { return x.network() && x.sender().Process != "" },
		(*situation).localServer},
	{"repair the link", func(x *situation) bool { return x.network() && x.lossy() }, (*situation).repairLink},
	{"ask for more at a time", func(x *situation) bool { return x.network() && x.trips() }, (*situation).askForMore},
	{"use more connections", func(x *situation) bool { return x.network() && x.windowFull() },
		(*situation).moreConnections},
	{"fetch ahead", (*situation).network, (*situation).fetchAhead},
	{"raise the limit", func(x *situation) bool { return x.storage && x.limited() != nil }, (*situation).raiseLimit},
	{"raise the limit of memory", func(x *situation) bool { return x.storage && x.Squeezed != nil },
		(*situation).raiseMemory},
	{"let the page cache keep it", func(x *situation) bool { return x.storage && x.Bypass != nil }, (*situation).letKeep},
	{"find why nothing answers", (*situation).unanswered, (*situation).findUnanswered},
	{"read eagerly", (*situation).mapped, (*situation).readEagerly},
	{"pack the files", (*situation).manyFiles, (*situation).packFiles},
	{"more slots", (*situation).fewSlots, (*situation).allowMore},
	{"more connections", (*situation).oneConnection, (*situation).connectMore},
	{"read larger pieces", (*situation).smallReads, (*situation).readLarger},
	{"find what holds it back", func(x *situation) bool { return x.storage && x.NoDevice && len(x.Mounts) == 0 },
		gaining("Find what holds its reads and writes back before they reach a disk, such as limits outside this " +
			"container, or keep the data in memory: ")},
	{"write elsewhere", func(x *situation) bool {
		return x.storage && x.Kind != window.ModelLoad && x.writes()
	}, gaining("Write in the background or to a faster disk: ")},
	{"stagger the starts", func(x *situation) bool { return x.storage && x.Others > 0 }, (*situation).stagger},
	{"keep what was in memory", func(x *situation) bool { return x.cold() && x.evicted() }, (*situation).keepCached},
	{"read the image's layer first", func(x *situation) bool { return x.cold() && x.Load.Layer }, (*situation).readLayer},
	{"preload the next model", func(x *situation) bool { return x.cold() && x.Load.IdleAhead >= x.Storage },
		(*situation).preload},
	{"raise workers or prefetch", func(x *situation) bool { return x.canReadAhead() && x.workersSuffice() },
		(*situation).moreWorkers},
	{"raise workers or prefetch", func(x *situation) bool { return x.canReadAhead() && x.disk.FarFromCeiling() },
		(*situation).readAhead},
	{"raise workers or prefetch", func(x *situation) bool {
		return x.mountIdles() && (x.Kind == window.ModelLoad || helps(twiceWorkers(x.Report)))
	},
		(*situation).readMountAhead},
	{"keep it in memory", func(x *situation) bool { return x.storage && x.Kind == window.ModelLoad }, (*situation).keep},
	{"raise workers or prefetch", func(x *situation) bool { return x.canReadAhead() && x.disk.Name != "" },
		(*situation).readAheadOrKeep},
	{"faster storage", func(x *situation) bool { return x.storage }, (*situation).faster},
	{"storage behind the work", (*situation).lateForStorage, (*situation).fasterSource},
	{"free the cores", func(x *situation) bool { return x.cpu && x.shares.Ready >= window.Thresholds.Stall },
		(*situation).freeCores},
	{"more cores", func(x *situation) bool { return x.cpu && len(x.GPUIDs) == 0 },
		(*situation).moreCores},
	{"convert less", func(x *situation) bool { return x.cpu && x.Kind == window.ModelLoad },
		(*situation).convertLess},
	{"decode less", func(x *situation) bool { return x.cpu && x.full() },
		always("No core is free: decode less, cache decoded samples, or move the work to more cores.")},
	{"decode less", func(x *situation) bool { return x.cpu && !x.workersHelp() }, (*situation).decodeLess},
	{"raise workers", func(x *situation) bool { return x.cpu }, (*situation).raiseWorkers},
	{"faster GPU", func(x *situation) bool {
		return x.Verdict == window.Unknown && x.shares.Other < window.Thresholds.Stall && helps(twiceGPU(x.Report))
	}, (*situation).onlyGPU},
	{"look where it waited", func(x *situation) bool {
		return x.waitsMost() || x.idles() && x.shares.Other >= window.Thresholds.Other
	}, (*situation).whereItWaited},
	{"free the cores", func(x *situation) bool {
		return x.shares.Other >= window.Thresholds.Other && x.Starved.Seconds() >= x.shares.Other/2*x.Duration().Seconds()
	}, (*situation).freeCores},
	{"boot with psi=1", func(x *situation) bool { return x.Lacks(window.NoIOPressure) },
		always("No I/O pressure can be read, which shows what tasks wait for: stallspan check says what changes that.")},
	{"look elsewhere", func(*situation) bool { return true },
		(*situation).askStack},
}

func always(text string) func(*situation) string { return func(*situation) string { return text } }

func gaining(text string) func(*situation) string {
	return func(x *situation) string { return text + x.gain + "." }
}

func (x *situation) advice() *advice { return &remedies[x.index()] }

func (x *situation) index() int {
	i := 0
	for !remedies[i].when(x) { // the last one always fits
		i++
	}
	return i
}

func newSituation(r *window.Report) *situation {
	x := &situation{Report: r, shares: r.Shares()}
	switch {
	case r.SlowDevice != nil && r.SlowDevice.Name != "":
		x.disk = r.SlowDevice.DiskUse
	case len(r.Disks) > 0:
		from := func(d window.DiskUse) bool { return slices.Contains(r.From, d.Name) }
		x.disk = r.Disks[max(0, slices.IndexFunc(r.Disks, from))]
	}
	x.shallow = x.disk.QueueDepth < deepQueue && x.disk.Lacks&sample.LacksQueue == 0
	x.reset = r.Lacks(window.DiskReset) && len(r.Disks) > 0
	if x.network() {
		x.setGain()
		return x
	}
	computing := r.Verdict == window.Mixed && x.shares.Work() > x.shares.Storage && len(r.GPUIDs) > 0
	x.storage = r.Verdict == window.StorageBound || r.Verdict == window.Mixed && !computing
	x.cpu = r.Verdict == window.CPUBound && !x.waitsMost() || computing
	x.setGain()
	if x.storage && x.predicted && max(r.Speedup, r.SpeedupHigh) < minHelp {
		x.storage, x.cpu = false, x.pacer == nil // nothing is gained there: all cores or one GPU are the limit
	}
	return x
}

// idles reports whether most of other was one kind of waiting.
func (x *situation) idles() bool {
	kind, _ := x.MainReason()
	return kind != ""
}

// waitsMost reports whether a window that is CPU bound waited longer, for one kind of thing, than it worked.
func (x *situation) waitsMost() bool {
	return x.Verdict == window.CPUBound && x.shares.Other > x.shares.Work() && x.idles()
}

func (x *situation) setGain() {
	r := x.Report
	faster, low, high := r.Speedup, r.SpeedupLow, r.SpeedupHigh
	if w := r.WhatIf; w != nil && r.Verdict == window.Mixed && x.network() {
		faster, low, high = w.NoNetwork, w.NetworkLow, w.NetworkHigh
	}
	switch {
	case faster == 0 && r.Verdict == window.NetworkBound:
		x.gain = percent(x.shares.Network) + " of its time was waiting"
	case faster == 0 || faster >= 10 && (!isWide(faster, low, high) || x.shares.Storage+x.shares.Network >= nearlyAll):
		x.gain = "nearly all of its time was waiting"
	default:
		x.gain, x.predicted = Faster(faster, low, high), true
		if !x.network() {
			x.pacer = r.Pacer()
			x.gain += x.beyond(faster) + x.paced()
		}
	}
}

// beyond names what a prediction has besides the storage stall that the report shows; "" for little. The kernel works
// to fetch data, and work of others comes late for its data.
func (x *situation) beyond(faster float64) string {
	more := 1 - 1/faster - x.shares.Storage
	switch {
	case more < smallPart:
		return ""
	case len(x.GPUIDs) > 0 && !x.storage:
		return "" // the remedy says so
	case len(x.GPUIDs) > 0:
		return ", with " + percent(more) + " of waiting for work whose data came late"
	}
	return ", with " + percent(more) + " of the kernel's work to fetch the data, which counts as on CPU"
}

// paced names the GPU that bounds the prediction; "" without one.
func (x *situation) paced() string {
	if x.pacer == nil {
		return ""
	}
	return ": " + x.pacerDoes()
}

// pacerDoes names what the busiest GPU is for the others. In a collective it counts as busy, with few SMs at work.
func (x *situation) pacerDoes() string {
	busy := x.pacer.Busy.Seconds() / x.Duration().Seconds()
	text := x.pacer.Name() + " is busy " + percent(busy) + " and "
	for i := range x.Uses {
		u := &x.Uses[i]
		sm, known := u.Means.Get(history.SMActive)
		switch {
		case u.ID != x.pacer.ID || !known:
		case sm < fewSMs*busy:
			return text + "mostly waits for the others in a collective, with " + percent(sm) + " of its SMs at work"
		default:
			return text + "is the limit"
		}
	}
	return text + "is the limit, or waits for the others in a collective"
}

// without is the gain under a condition, if that is a prediction.
func (x *situation) without(condition string) string {
	if x.predicted {
		return condition + ", " + x.gain
	}
	return x.gain
}

// canReadAhead reports whether the disk has capacity left. A replay may know that more workers would not use it. A
// layer that is slower than what is below it serves its operations one after another, or delays them.
func (x *situation) canReadAhead() bool {
	layer := x.SlowDevice != nil && x.SlowDevice.Layer
	return x.storage && !layer && !x.NoDevice && !x.reset && x.shallow && !x.disk.NearCeiling() && x.workersHelp()
}

// workersHelp is false if twice the workers would not help, by a replay.
func (x *situation) workersHelp() bool {
	faster := twiceWorkers(x.Report)
	return faster == 0 || helps(faster)
}

// workersSuffice reports whether more workers help nearly as much as storage without waiting.
func (x *situation) workersSuffice() bool {
	faster := twiceWorkers(x.Report)
	return helps(faster) && faster-1 >= nearlySame*(x.WhatIf.NoStorage-1)
}

// warm reports whether a load came from memory.
func (x *situation) warm() bool {
	fromMemory := x.Load.HasHit && x.Load.Hit >= warmLoad
	return x.Kind == window.ModelLoad && fromMemory && x.shares.Storage < window.Thresholds.Stall
}

// cold reports whether a load waited for a file that the page cache did not have.
func (x *situation) cold() bool {
	return x.storage && x.Kind == window.ModelLoad && x.Load.HasHit && x.Load.Hit < coldLoad
}

// evicted reports whether most of what a load had to fetch had been in memory after the last load of its path.
func (x *situation) evicted() bool {
	return float64(x.Load.Evicted) >= coldLoad*(1-x.Load.Hit)*float64(x.Load.Size)
}

func (x *situation) keepCached() string {
	return "Keep the model in memory, where " + Size(x.Load.Evicted) + " of it were after its last load" +
		mover(x.Report) + ": lock its file there (vmtouch -l), give its cgroup memory.low, or read it again before the " +
		"load: " + x.gain + "."
}

func (x *situation) readLayer() string {
	return "The model is in a layer of the container's image, which nothing had read yet: read its file once on this " +
		"machine before the start, as when the image is pulled, or keep it on a volume that stays in memory: " + x.gain + "."
}

func (x *situation) preload() string {
	// One call of posix_fadvise, readahead or madvise reads no more than read_ahead_kb or max_sectors_kb of the disk.
	return fmt.Sprintf("Read the model ahead while the disks have nothing to do, as in the %s before this load "+
		"(vmtouch -t, or cat to /dev/null): %s.", Duration(x.Load.IdleAhead.Seconds()), x.gain)
}

func (x *situation) lookAtPacer() string {
	return "Look at what " + x.pacer.Name() + " does besides the others: storage alone leaves little to gain, because " +
		x.pacerDoes() + "."
}

// full reports whether more workers would find no free core.
func (x *situation) full() bool {
	starved := x.Starved.Seconds() >= window.Thresholds.Stall*x.Duration().Seconds() && x.Starved > 0
	return x.CPUUsed >= coresFull || starved
}

// freeCores is for work that had no core, also by the pressure of its cgroup alone. Where others took the cores,
// nothing follows: the finding says so.
func (x *situation) freeCores() string {
	share := cmp.Or(x.shares.Ready, x.Starved.Seconds()/x.Duration().Seconds())
	text := "It had no core " + percent(share) + " of the time"
	switch {
	case takenCores(x.Report) != "":
		return ""
	case x.CPUUsed >= coresFull:
		return text + ": start fewer threads or processes, or use more cores."
	}
	return text + ": let it run on more cores, or raise its limit of CPU time."
}

func (x *situation) stagger() string {
	disk := slices.MaxFunc(x.From, func(a, b string) int { return cmp.Compare(x.OthersOn(a), x.OthersOn(b)) })
	others, read := "another program", "reads"
	if n := x.OthersOn(disk); n > 1 {
		others, read = fmt.Sprintf("%d other programs", n), "read"
	}
	how := "Stagger the starts"
	if x.Kind != window.ModelLoad {
		how = "Stagger the jobs, or keep the data in memory"
	}
	return fmt.Sprintf("%s: %s %s from %s at the same time; %s.", how, others, read, disk,
		x.without("without any waiting"))
}

// ahead begins the advice to have more reads at once.
func (x *situation) ahead() string {
	if x.Kind == window.ModelLoad {
		return "Read the model ahead, or in several pieces at once"
	}
	return "Read ahead with more workers" + inPython(x.Report, dataLoaders)
}

// dataLoaders is what workers that read ahead are called in Python.
const dataLoaders = "num_workers and prefetch_factor of PyTorch's DataLoader, prefetch of tf.data"

func (x *situation) moreWorkers() string {
	text := x.ahead() + ": twice as many would make it about " + times(twiceWorkers(x.Report)) + " faster" + ifServed
	if x.WhatIf.NoStorage > 0 {
		text += "; storage without waiting, " + x.noStorage()
	}
	return text + "."
}

// noStorage is what the replay predicts of storage that does not wait.
func (x *situation) noStorage() string {
	return timesFrom(x.WhatIf.NoStorage, x.WhatIf.Low, x.WhatIf.High)
}

func (x *situation) readAheadOrKeep() string {
	return "Read ahead with more workers" + inPython(x.Report, dataLoaders) + ", or keep the data in memory: " +
		x.gain + "."
}

func (x *situation) readAhead() string {
	return fmt.Sprintf("%s: %s read %s/s, and can read at least %s/s; %s.", x.ahead(), x.disk.Name,
		x.readRate(), Size(uint64(x.disk.ReadCeiling)), x.gain)
}

func (x *situation) keep() string {
	return "Keep the model's file in memory (page cache or tmpfs) or move it to a faster disk" + x.limit() + ": " +
		x.gain + x.noWorkers() + "."
}

func (x *situation) faster() string {
	return "Keep the data in memory or move it to faster storage" + x.limit() + ": " + x.gain + x.noWorkers() + "."
}

// noWorkers adds that more workers would not help, where that is known.
func (x *situation) noWorkers() string {
	if x.workersHelp() {
		return ""
	}
	return "; more workers would not help (twice as many: " + times(twiceWorkers(x.Report)) + ")"
}

func (x *situation) decodeLess() string {
	return "Decode less, or cache decoded samples; more workers would not help (twice as many: " +
		times(twiceWorkers(x.Report)) + ")."
}

// storageCounts reports whether storage is a limit besides the CPU: the verdict says so, or without it the window would
// be shorter by as much as counts as a stall.
func (x *situation) storageCounts() bool {
	return x.Verdict == window.Mixed || x.Speedup >= 1/(1-window.Thresholds.Stall)
}

func (x *situation) moreCores() string {
	if x.storageCounts() {
		return "Spread the work over more cores, or do less of it; " + x.without("with storage that never waits") + "."
	}
	return "Storage is not the limit: spread the work over more cores, or do less of it."
}

func (x *situation) convertLess() string {
	if x.storageCounts() {
		return "Copy and convert less, or load with more threads; " + x.without("with storage that never waits") + "."
	}
	return "Storage is not the limit of this load: copy and convert less, or load with more threads."
}

// lateForStorage reports whether CPU work that a GPU waited for is late for storage: by a replay, the window would be
// shorter without storage by more than it waited for storage itself. A worker reads while the GPU works, say, and the
// GPU waits for what another thread does with the data then. Without a GPU nothing hides such a read, and a prediction
// beyond the storage stall is only that of work that runs slower after a read.
func (x *situation) lateForStorage() bool {
	if !x.cpu || len(x.GPUIDs) == 0 || x.WhatIf == nil || !helps(x.Speedup) || x.Speedup < twiceWorkers(x.Report) {
		return false
	}
	shorter := 1 - 1/x.Speedup
	return shorter >= max(x.shares.Storage+lateShare, 2*x.shares.Storage)
}

func (x *situation) fasterSource() string {
	text := "The data for this work come late: keep them in memory or on a faster disk: " + x.gain
	if faster := twiceWorkers(x.Report); helps(faster) {
		text += "; or read with more workers (twice as many: about " + times(faster) + ifServed + ")"
	}
	return text + "."
}

func (x *situation) raiseWorkers() string {
	text := "Give the input pipeline more workers" + inPython(x.Report, dataLoaders)
	if faster := twiceWorkers(x.Report); faster > 0 {
		text += " (twice as many: about " + times(faster) + " faster)"
	}
	return text + ", or cache decoded samples."
}

func (x *situation) fasterGPU() string {
	faster := twiceGPU(x.Report)
	switch {
	case faster == 0:
		return "Storage and the input pipeline leave nothing to gain: use a faster GPU or a cheaper model."
	case !helps(faster):
		return "Storage leaves nothing to gain, and the input pipeline is hardly faster than the GPU (a GPU twice as fast: " +
			times(faster) + "): make both faster, or the model cheaper."
	}
	return "Storage and the input pipeline leave nothing to gain: use a faster GPU (twice as fast: " + times(faster) +
		") or a cheaper model."
}

func (x *situation) onlyGPU() string {
	return "No stall is large: a GPU twice as fast would make it " + times(twiceGPU(x.Report)) + " faster."
}

// whereToLook are the remedies of other, by its main reason.
var whereToLook = map[window.OtherKind]string{
	window.OtherGPU: "Look at what the program waits for in the GPU's driver: synchronization, copies, allocations, or " +
		"many small kernels.",
	window.OtherNetwork: "Look at the other end of the connection: it answers late, or the program asks it late.",
	window.OtherPipe:    "Look at the program at the other end of the pipe: it delivers or reads too slowly.",
	window.OtherLock:    "Look at who holds the lock: another thread or process keeps this one waiting.",
	window.OtherTimer:   "Look for pauses in the program: sleeps, polling intervals and rate limits.",
	window.OtherChild:   "Look at the child process that the program waits for.",
	window.OtherSteal:   "The hypervisor runs other machines on these CPUs: use dedicated CPUs, or another host.",
	window.OtherStop: "Find who stopped the program: SIGSTOP, a debugger, a paused container, or a scheduler that " +
		"suspends jobs.",
	window.OtherEvent: "Look at what the program waits for in that call: neither storage nor a CPU is the limit.",
}

func (x *situation) whereItWaited() string {
	kind, _ := x.MainReason()
	if kind == window.OtherSteal || kind == window.OtherStop {
		return whereToLook[kind]
	}
	return whereToLook[kind] + " While it runs, " + x.pySpy() + " shows the line of a Python program."
}

// pySpy is a command that shows where a Python program waits.
func (x *situation) pySpy() string {
	if x.PID == 0 || x.ByClient || x.Owned { // of a program that run started, the next one has another PID
		return "py-spy dump --pid PID"
	}
	return fmt.Sprintf("py-spy dump --pid %d", x.PID)
}

// askStack is for idle time whose reason is not known.
func (x *situation) askStack() string {
	return "Find the line where it waits: while it runs, " + x.pySpy() + " shows that of a Python program."
}

// writes reports whether the program itself writes more than it reads. Without its own bytes, those of the disk decide.
func (x *situation) writes() bool {
	if x.Own != nil {
		return x.Own.Written > x.Own.Read && x.disk.WriteBytes > x.disk.ReadBytes
	}
	return x.disk.WriteBytes > x.disk.ReadBytes
}

// limited returns the limit of a cgroup that the window waited for; nil without one.
func (x *situation) limited() *window.Limited {
	if x.SlowDevice == nil {
		return nil
	}
	return x.SlowDevice.Limit
}

func (x *situation) raiseLimit() string {
	l := x.limited()
	return "Raise the limit that " + setter(l) + " sets on " + l.Device + " (" + rate(l) + "), " +
		"or keep the data in memory: " + x.gain + "."
}

// raiseMemory is for files that a limit of memory has dropped from the page cache.
func (x *situation) raiseMemory() string {
	m := x.Squeezed
	limit := Size(m.Limit)
	if m.Used > 0 {
		limit += ", " + Size(m.Used) + " in use"
	}
	text := fmt.Sprintf("Raise the memory limit of cgroup %s (%s): it dropped files from memory, and %s were read again",
		m.Cgroup, limit, Size(m.Again))
	if m.Free > 0 {
		text += "; the machine has " + Size(m.Free) + " free"
	}
	return text + "; " + x.without("without waiting") + "."
}

// letKeep is for files that the page cache does not keep, although memory is not short.
func (x *situation) letKeep() string {
	text := "The page cache kept " + Size(x.Bypass.Read-x.Bypass.Gone) + " of the " + Size(x.Bypass.Read) +
		" that were read, and memory was not short: "
	if x.Bypass.Dropped {
		text += "it was dropped as a whole meanwhile (drop_caches). Find the program that does so, often a timer"
	} else {
		text += "the program reads past it (O_DIRECT). Read without that, or keep the data in its own memory"
	}
	return text + "; " + x.without("without waiting") + "."
}

// limit states that the disk read as fast as it can.
func (x *situation) limit() string {
	if !x.disk.NearCeiling() {
		return ""
	}
	return fmt.Sprintf(" (%s read %s/s and has never read much more)", x.disk.Name, x.readRate())
}

// readRate is the disk's mean throughput in the window.
func (x *situation) readRate() string {
	seconds := x.Duration().Seconds()
	if seconds <= 0 {
		return Size(0)
	}
	return Size(uint64(float64(x.disk.ReadBytes) / seconds))
}
