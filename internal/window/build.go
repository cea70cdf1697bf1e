package window

import (
	"cmp"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
)

// Machine is what a report needs besides the history.
type Machine struct {
	Leaves   []string      // leaf disks
	Lacks    DeviceFields  // of devices whose counters cannot be true, what is known of that
	GPUs     []string      // hw.id of every readable GPU
	Lost     []string      // GPUs that were readable when the window began and are no longer
	Held     []string      // GPUs on which the job has held memory; empty if unknown
	Target   ledger.Target // of the window's job, without a GPU
	Scope    Scope         // of that job; "" for the whole machine
	Pressure bool          // the kernel reports I/O pressure

	HiddenReads bool // the job's I/O is not readable, and nothing else separates its waiting from others'
	NoJobReads  bool // the job's I/O is not readable
	ClientGone  bool // the window has no job, because its job was the client that announced it and has ended

	// Waits lists what the job's leading thread waited for, by GPU of Ledgers; empty without evidence of its threads.
	Waits map[string]ledger.Waits

	Steps *ledger.Steps // of the loop of that thread, of an epoch; nil if they are not known

	Peers []sample.Peer // of the job, as they were read last

	NoSchedule string // why the scheduler's evidence is not there, as in Report; "" if it is, or if that is unknown

	Layers  []Layer        // devices above the leaf disks, sorted by name
	Devices [][]string     // of each file system on which the job has had files open; empty if unknown
	Limits  []sample.Limit // of the cgroups of the job

	Mounts   []sample.Mount         // without a local disk, with files that the job has had open
	Counted  []sample.MountCounters // newest readings of mounts; their growth is in the history
	Ceilings []sample.Ceiling       // of the disks, at present
	Drives   []sample.Drive         // with their health, the worst first
	Cores    int                    // logical CPUs; 0 if unknown
	Readers  []Reader               // processes that read from storage in the window
	Started  []time.Duration        // when processes of the job were first seen, besides its first ones: the newest
}

// builder fills in a Report.
type builder struct {
	*Report
	history *history.History
	machine *Machine
}

func newBuilder(h *history.History, w *Window, m *Machine) *builder {
	b := &builder{&Report{Window: *w, Scope: cmp.Or(m.Scope, Host), GPUIDs: w.GPUs}, h, m}
	if len(b.GPUIDs) == 0 {
		b.GPUIDs = b.gpusInUse(slices.Concat(m.GPUs, m.Lost))
	}
	return b
}

// Ledgers lists the GPUs whose ledgers a report on w adds up; a single "" without a GPU. The first one has the job's
// leading thread.
func Ledgers(h *history.History, w *Window, m *Machine) []string {
	return newBuilder(h, w, m).ledgers()
}

// Make reports on w, from w.Start to w.End. It only reads h: any number of reports may be made at once.
func Make(h *history.History, w *Window, m Machine) *Report {
	b := newBuilder(h, w, &m)
	reset := b.disks()
	b.own()
	b.pressure()
	b.cores()
	b.ledger()
	b.mounts()
	b.ceilings()
	b.From = b.readFrom()
	for _, disk := range reset {
		if b.worksWith(disk) {
			b.lack(Missing{Reason: DiskReset, Device: disk})
		}
	}
	b.load()
	b.calls()
	b.waitsForMemory()
	b.boundStorage()
	b.slowDevice()
	b.latencies()
	b.network()
	b.judge()
	b.uses()
	if b.Kind == Epoch {
		b.Steps = m.Steps
	}
	b.findings()
	b.firstBatch()
	b.failing(m.Drives)
	b.stalls()
	b.phases()
	return b.Report
}

// phases makes a report of each phase.
func (b *builder) phases() {
	for i := range b.Phases {
		p := &b.Phases[i]
		w := b.Window
		w.Kind, w.Name, w.Model, w.Path = Custom, p.Name, "", ""
		b.PhaseReports = append(b.PhaseReports, b.over(w, p.Start, p.End))
	}
}

// over reports on another time of the window's job, whose start and end are not open.
func (b *builder) over(w Window, start, end time.Duration) *Report {
	w.Phases, w.Open, w.StartOpen, w.StartEdge, w.EndEdge = nil, 0, 0, nil, nil
	if w.Unread > 0 {
		w.Unread = min(max(0, b.Start.Mono+b.Unread-start), end-start)
	}
	w.Start = sample.Stamp{Mono: start, Wall: b.Wall(start)}
	w.End = sample.Stamp{Mono: end, Wall: b.Wall(end)}
	m := *b.machine
	m.Readers, m.Drives = nil, nil
	return Make(b.history, &w, m)
}

// between returns the growth of a quantity in the window.
func (b *builder) between(s history.Series, id string) (history.Delta, bool) {
	return b.history.Between(history.Key{Series: s, ID: id}, b.from(), b.to())
}

func (b *builder) own() {
	read, known := b.fetched()
	written, ok := b.between(history.JobWriteBytes, b.machine.Target.Job)
	if known && ok && !written.Reset {
		b.Own = &OwnIO{uint64(read), uint64(written.Value)}
	}
}

// gpusInUse leaves out the GPUs of other jobs, if the job's own are known, and those that did nothing in the window: a
// job with two GPUs that uses one does not wait for the other. If none did anything, all of them count.
func (b *builder) gpusInUse(gpus []string) []string {
	own := slices.DeleteFunc(slices.Clone(gpus), func(id string) bool { return !slices.Contains(b.machine.Held, id) })
	if len(own) > 0 {
		gpus = own
	}
	var used []string
	for _, id := range gpus {
		if d, ok := b.between(history.GPUBusyTime, id); ok && d.Value > 0 {
			used = append(used, id)
		}
	}
	if len(used) == 0 {
		return gpus
	}
	return used
}

// ledger sums the parts over the GPUs.
func (b *builder) ledger() {
	if b.Unread.Seconds() > maxUnread*b.Duration().Seconds() {
		return // of a phase
	}
	gpus := b.ledgers()
	var widest float64
	for _, gpu := range gpus {
		width, ok := b.addLedger(gpu)
		if !ok {
			return
		}
		widest = max(widest, width)
	}
	if b.machine.Target.Job != "" && !b.machine.Target.Own {
		widest = max(widest, cpuTick.Seconds()) // at either end
	}
	if last, ok := b.history.Last(history.GPUBusyTime); ok && b.history.Lags(b.to()) {
		widest = max(widest, (b.End.Mono-last).Seconds()/2) // the driver has not reported this time yet
	}
	b.Split, b.Interrupted = true, b.Interrupted || b.Unread > 0
	total := b.GPUTime()
	if sum := b.Busy + b.Storage + b.CPU; sum > total {
		// The sources are read microseconds apart. This takes the difference at the edges back in proportion.
		scale := float64(total) / float64(sum)
		b.Busy = time.Duration(float64(b.Busy) * scale)
		b.Storage = time.Duration(float64(b.Storage) * scale)
		b.CPU = min(time.Duration(float64(b.CPU)*scale), total-b.Busy-b.Storage)
	}
	b.Other = total - b.Busy - b.Storage - b.CPU
	b.Gain = max(0, min(b.Gain, total-b.Busy))
	dark := b.evidence()
	if total > 0 {
		b.Uncertainty = min(1, widest/total.Seconds()*float64(len(gpus))+
			(b.Open.Seconds()/2+b.Unread.Seconds())/b.Duration().Seconds()+dark+b.chance())
	}
}

// stretch is how much longer the window is than the time of it that was read: see Window.Unread.
func (b *builder) stretch() float64 {
	if b.Unread <= 0 {
		return 1
	}
	return b.Duration().Seconds() / (b.Duration() - b.Unread).Seconds()
}

// addLedger adds the parts of one GPU and returns half the width of the widest. It is false if they are not known.
func (b *builder) addLedger(gpu string) (width float64, ok bool) {
	if d, _ := b.between(history.GPUBusyTime, gpu); gpu != "" && (d.Reset || slices.Contains(b.machine.Lost, gpu)) {
		b.lack(Missing{Reason: GPULost, Device: gpu})
	}
	id := ledger.ID(b.machine.Target.Job, gpu)
	var parts [3]history.Delta
	if !b.history.BetweenAll(history.LedgerBusy, id, b.from(), b.to(), parts[:]) {
		return 0, false
	}
	gain, known := b.between(history.LedgerGain, id)
	if !known { // the history keeps it for a shorter time
		gain = parts[1]
	}
	whole := b.stretch()
	b.Gain += seconds(gain.Value * whole)
	for i, part := range [...]*time.Duration{&b.Busy, &b.Storage, &b.CPU} {
		parts[i].Value *= whole
		*part += seconds(parts[i].Value)
		b.Interrupted = b.Interrupted || parts[i].Reset
		width = max(width, (parts[i].High-parts[i].Low)/2)
	}
	b.addPart(gpu, seconds(parts[0].Value), seconds(parts[1].Value), seconds(parts[2].Value))
	return width, true
}

func (b *builder) pressure() {
	some, okSome := b.between(history.IOSome, b.machine.Target.Pressure)
	full, okFull := b.between(history.IOFull, b.machine.Target.Pressure)
	if okSome && okFull {
		b.Pressure = &Pressure{seconds(some.Value), seconds(full.Value)}
	}
	if b.machine.Target.Own {
		starved, _ := b.between(history.CPUSome, b.machine.Target.Pressure)
		b.Starved = seconds(starved.Value)
	}
}

// cores sets the share of the time of all cores in which they worked, and how much of it was of others.
func (b *builder) cores() {
	worked, ok := b.between(history.HostCPUTime, "")
	length := b.Duration().Seconds()
	if total := length * float64(b.machine.Cores); ok && total > 0 {
		b.CPUUsed, b.Cores = min(1, worked.Value/total), b.machine.Cores
		if own, known := b.between(history.JobCPUTime, b.machine.Target.Job); known && b.machine.Target.Job != "" {
			b.CPUOthers = max(0, worked.Value-own.Value) / length
		}
	}
}
