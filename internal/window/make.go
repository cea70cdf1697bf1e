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

	Holds []ledger.Hold  // long waits of that thread
	Ended []sample.Ended // the newest processes of the job that have ended

	Steps *ledger.Steps // of the loop of that thread, of an epoch; nil if they are not known

	Peers []sample.Peer // of the job, as they were read last

	NoSchedule string // why the scheduler's evidence is not there, as in Report; "" if it is, or if that is unknown

	Layers  []Layer        // devices above the leaf disks, sorted by name
	Devices [][]string     // of each file system on which the job has had files open; empty if unknown
	Limits  []sample.Limit // of the cgroups of the job
	Memory  sample.MemoryLimit

	PageCache bool          // what it keeps of the job's files is known
	Direct    time.Duration // monotonic, when a file was last seen open past it (O_DIRECT); 0 for never

	Mounts   []sample.Mount         // without a local disk, with files that the job has had open
	Counted  []sample.MountCounters // newest readings of mounts; their growth is in the history
	Ceilings []sample.Ceiling       // of the disks, at present
	Drives   []sample.Drive         // with their health, the worst first
	Cores    int                    // logical CPUs; 0 if unknown
	Readers  []Reader               // processes that read from storage in the window
	Started  []time.Duration        // when processes of the job were first seen, besides its first ones: the newest
}

// view is what a report is made from: a window, its machine and the history. No stage changes it.
type view struct {
	*Window

	history *history.History
	machine *Machine
}

// Make reports on w, from w.Start to w.End. It only reads h: any number of reports may be made at once. The report has
// five parts. Each is a function of the view and of the parts before it.
func Make(h *history.History, w *Window, m Machine) *Report {
	v := &view{w, h, &m}
	r := &Report{Window: *w}
	r.Facts = gather(v)
	r.Ledger = divide(v, r)
	r.Device = blame(v, r)
	r.Judgement = judge(v, r)
	r.Further = find(v, r)
	return r
}

// over reports on another time of the window's job, whose start and end are not open.
func (v *view) over(w Window, start, end time.Duration) *Report {
	w.Phases, w.Open, w.StartOpen, w.StartEdge, w.EndEdge = nil, 0, 0, nil, nil
	if w.Unread > 0 {
		w.Unread = min(max(0, v.Start.Mono+v.Unread-start), end-start)
	}
	w.Start = sample.Stamp{Mono: start, Wall: v.Wall(start)}
	w.End = sample.Stamp{Mono: end, Wall: v.Wall(end)}
	m := *v.machine
	m.Readers, m.Drives = nil, nil
	return Make(v.history, &w, m)
}

// between returns the growth of a quantity in the window.
func (v *view) between(s history.Series, id string) (history.Delta, bool) {
	return v.history.Between(history.Key{Series: s, ID: id}, v.from(), v.to())
}

// fetched returns how many bytes the window's job fetched from storage, if that is readable.
func (v *view) fetched() (bytes float64, ok bool) {
	if v.machine.Target.Job == "" || v.machine.NoJobReads {
		return 0, false
	}
	d, ok := v.between(history.JobReadBytes, v.machine.Target.Job)
	return d.Value, ok && !d.Reset
}

// ledgerID is the id of a GPU's ledger; "" is no GPU.
func (v *view) ledgerID(gpu string) string { return ledger.ID(v.machine.Target.Job, gpu) }

// gpus lists the window's GPUs. If it names none, it leaves out those of other jobs, where the job's own are known, and
// those that did nothing in the window: a job with two GPUs that uses one does not wait for the other. If none did
// anything, all of them count.
func (v *view) gpus() []string {
	if len(v.GPUs) > 0 {
		return v.GPUs
	}
	gpus := slices.Concat(v.machine.GPUs, v.machine.Lost)
	own := slices.DeleteFunc(slices.Clone(gpus), func(id string) bool { return !slices.Contains(v.machine.Held, id) })
	if len(own) > 0 {
		gpus = own
	}
	var used []string
	for _, id := range gpus {
		if d, ok := v.between(history.GPUBusyTime, id); ok && d.Value > 0 {
			used = append(used, id)
		}
	}
	if len(used) == 0 {
		return gpus
	}
	return used
}

// Ledgers lists the GPUs whose ledgers a report on w adds up; a single "" without a GPU. The first one has the job's
// leading thread.
func Ledgers(h *history.History, w *Window, m *Machine) []string {
	f := Facts{GPUIDs: (&view{w, h, m}).gpus()}
	return f.ledgers()
}

// scope is whose time the ledger divides.
func (v *view) scope() Scope { return cmp.Or(v.machine.Scope, Host) }
