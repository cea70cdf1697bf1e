package sampling

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/ledger/chain"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Concurrent returns the windows that overlap with w: those that ended, with the disks that they read from, and those
// that are open. It is called with the lock of Readings held.
type Concurrent func(w *window.Window) (ended []window.Other, open []*window.Window)

// BeginWindow sets the start of a window to a moment, and writes it to the journal.
func (r *Readings) BeginWindow(w *window.Window, at Moment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Start, w.StartEdge = at.At, at.edge
	if r.now.schedule.moments != nil {
		r.now.schedule.moments.Begin(w.Job)
	}
	if w.Source != window.Detected { // it began some time ago, and has raised them itself
		w.Ceilings = r.now.ceilings.All()
	}
	if r.now.journal.to != nil {
		r.now.journal.mark(recording.Mark{
			Op: recording.Begin, Edge: at.number, At: &at.At, ID: w.ID, Window: recording.NewWindow(w),
		})
	}
}

// DropWindow writes to the journal that a window is discarded.
func (r *Readings) DropWindow(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.journal.mark(recording.Mark{Op: recording.Drop, ID: id})
}

// Ending is how a window ends.
type Ending struct {
	At         Moment
	Unfinished bool
	Readers    []window.Reader // the processes that fetched most
	Cached     *uint64         // bytes of the window's path in the page cache, of a load from a mount without a disk
	NoSchedule string          // of a recording: why the scheduler was not followed
	Concurrent Concurrent      // nil skips the other windows

	// Judge completes the report, and returns the limits of its length for the journal. It is called with the lock of
	// Readings held, so it may call DiskKind, which does not take that lock, but no other method.
	Judge func(*window.Report) *window.Limits
}

// see adds to a window what was at its path when it ended.
func (e *Ending) see(w *window.Window) {
	if e.Cached != nil {
		w.Seen.After, w.Seen.HasAfter = *e.Cached, true
	}
}

// EndWindow returns the final report of a window, and writes its end to the journal.
func (r *Readings) EndWindow(w *window.Window, e Ending) *window.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.now
	s.markOwn(e.Readers, w.Job)
	s.schedule.recorded = cmp.Or(s.schedule.recorded, e.NoSchedule)
	w.Unfinished = w.Unfinished || e.Unfinished
	e.see(w)
	if len(s.accounts.waiting) > 0 {
		s.advance()
		w.StartEdge = s.accounts.extrapolated(w.StartEdge)
		e.At.edge = s.accounts.extrapolated(e.At.edge)
	}
	report := s.report(w, e.At, e.Readers, e.Concurrent)
	limits := e.Judge(report)
	s.journal.mark(recording.Mark{
		Op: recording.End, Edge: e.At.number, At: &e.At.At, ID: w.ID, Unfinished: e.Unfinished,
		Readers: e.Readers, Cached: e.Cached, Limits: limits, NoSchedule: s.schedule.missing(),
	})
	return report
}

// MarkOwn marks the processes among e.Readers that belong to the window's job.
func (r *Readings) MarkOwn(w *window.Window, e *Ending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.markOwn(e.Readers, w.Job)
}

// EstimateEnd returns what EndWindow would, and changes nothing: what a GPU's driver has not yet returned is
// extrapolated.
func (r *Readings) EstimateEnd(w window.Window, e Ending) *window.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Unfinished = w.Unfinished || e.Unfinished
	e.see(&w)
	w.StartEdge, e.At.edge = r.now.accounts.extrapolated(w.StartEdge), r.now.accounts.extrapolated(e.At.edge)
	return r.now.report(&w, e.At, e.Readers, e.Concurrent)
}

// Report returns the report of a window up to a moment.
func (r *Readings) Report(w window.Window, at Moment, concurrent Concurrent) *window.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := r.now.report(&w, at, nil, concurrent)
	if tail, long := w.Tail(); long {
		report.Recent = window.Make(r.history, &tail, r.now.machine(&tail, concurrent))
	}
	return report
}

// Measure returns the report of a window that has its start and end. It leaves the window's job out unless the job was
// followed for all of that time. It does not consider other windows.
func (r *Readings) Measure(w *window.Window) *window.Report {
	r.mu.Lock()
	if j := r.now.jobs.byID[w.Job]; j == nil || w.Start.Mono < j.since {
		w.Job = ""
	}
	machine := r.now.machine(w, nil)
	r.mu.Unlock()
	return window.Make(r.history, w, r.shared(machine))
}

// shared makes usable without the lock of Readings what a report needs: its functions read the ledgers, which each
// reading changes, and take the lock.
func (r *Readings) shared(m window.Machine) window.Machine {
	if name := m.OtherName; name != nil {
		m.OtherName = func(gpu string, kind int) string {
			r.mu.Lock()
			defer r.mu.Unlock()
			return name(gpu, kind)
		}
	}
	if waits := m.Waits; waits != nil {
		m.Waits = func(gpu string) []window.Wait {
			r.mu.Lock()
			defer r.mu.Unlock()
			return waits(gpu)
		}
	}
	if steps := m.Steps; steps != nil {
		m.Steps = func(gpu string) (ledger.Steps, bool) {
			r.mu.Lock()
			defer r.mu.Unlock()
			return steps(gpu)
		}
	}
	return m
}

func (s *state) report(w *window.Window, at Moment, readers []window.Reader, concurrent Concurrent) *window.Report {
	w.End, w.EndEdge = at.At, at.edge
	if at.next != nil {
		w.Next = at.next
	}
	gone := s.clientGone(w)
	if gone {
		w.Job = ""
	}
	machine := s.machine(w, concurrent)
	machine.Readers, machine.ClientGone = readers, gone
	report := window.Make(s.history, w, machine)
	report.Who, report.Next = s.who(w), nil
	return report
}

// who returns the job with a name whose window it is: the window's own job, or the one that has its first process. It
// belongs to the user who announced the window: names of others are not reported to that user.
func (s *state) who(w *window.Window) sample.JobName {
	named := func(id string) bool {
		j := s.jobs.byID[id]
		return j != nil && j.Name.Name != "" && j.Name.Client == w.Client
	}
	if w.Job == "" {
		return sample.JobName{}
	}
	if named(w.Job) {
		return s.jobs.byID[w.Job].Name
	}
	for i := range s.latest.Jobs.Processes {
		if p := &s.latest.Jobs.Processes[i]; p.PID == w.PID && !p.Feeder && named(p.Job) {
			return s.jobs.byID[p.Job].Name
		}
	}
	return sample.JobName{}
}

// clientGone reports whether a window's job is a client that announced it, named no process and has ended. Such a
// client, like curl, did none of the window's work.
func (s *state) clientGone(w *window.Window) bool {
	if !w.ByClient || w.Job == "" {
		return false
	}
	j := s.newestOf(w.Job)
	return j == nil || j.Processes == 0
}

// machine returns what a report needs besides the history. Its functions need the lock of Readings.
func (s *state) machine(w *window.Window, concurrent Concurrent) window.Machine {
	machine := window.Machine{GPUs: s.gpuIDs()}
	machine.NoSchedule = s.schedule.missing()
	_, machine.Pressure = s.history.Last(history.IOSome)
	machine.Lost = s.history.Left(history.GPUBusyTime, w.Start.Mono)
	machine.Leaves = s.history.Known(history.DiskReadIOs) // also disks that were removed since
	machine.Ceilings, machine.Cores = s.ceilings.All(), len(s.latest.Cores.Cores)
	machine.Drives = slices.Clone(s.latest.Drives.Drives) // a report may be made while the next ones arrive
	machine.Layers = s.layers()
	if j := s.jobs.byID[w.Job]; j != nil {
		machine.Target = j.target()
		machine.GPUs = j.visible(machine.GPUs, s.latest.GPUs.GPUs)
		machine.Lost = j.visible(machine.Lost, s.latest.GPUs.GPUs)
		if j.OwnTime && len(j.gpus) == 0 {
			machine.GPUs, machine.Lost = nil, nil
		}
		machine.OtherName = func(gpu string, kind int) string {
			return s.accounts.ledger.Reason(ledger.ID(j.ID, gpu), chain.ReasonKind(kind), w.Start.Mono, w.End.Mono)
		}
		machine.Waits = func(gpu string) []window.Wait { return s.waits(w, gpu) }
		if w.Kind == window.Epoch {
			machine.Steps = func(gpu string) (ledger.Steps, bool) {
				return s.accounts.ledger.Steps(ledger.ID(j.ID, gpu), w.Start.Mono, w.End.Mono)
			}
		}
		machine.Peers = s.peersOf(j.ID)
		machine.Mounts = slices.Clone(j.mounts)
		if len(j.mounts) > 0 {
			machine.Counted = slices.Clone(s.latest.Mounts.MountCounters)
		}
		machine.Held = slices.Clone(j.gpus)
		machine.Scope = j.Scope
		reading := s.newestOf(j.ID)
		if reading != nil {
			machine.Limits, machine.Devices = reading.Limits, devicesOf(reading, w.Start.Mono)
		}
		machine.NoJobReads = reading != nil && !reading.HasIO
		machine.HiddenReads = !j.Own && machine.NoJobReads
	}
	if concurrent != nil {
		machine.Others = func() []window.Other { return s.others(w, concurrent) }
	}
	return machine
}

// waits lists what the leading thread of a window's job waited for from the network.
func (s *state) waits(w *window.Window, gpu string) (waits []window.Wait) {
	id := ledger.ID(w.Job, gpu)
	for _, one := range s.accounts.ledger.Waits(id, chain.ForNetwork, w.Start.Mono, w.End.Mono) {
		waits = append(waits, window.Wait{From: one.From, Name: one.Name, Time: one.Time, Times: one.Times})
	}
	return waits
}

// peersOf returns the newest reading of a job's peers.
func (s *state) peersOf(id string) (peers []sample.Peer) {
	for i := range s.latest.Peers.Peers {
		if p := &s.latest.Peers.Peers[i]; p.Job == id {
			peers = append(peers, *p)
		}
	}
	return peers
}

// layers lists the devices above the disks that have done something, sorted.
func (s *state) layers() (layers []window.Layer) {
	known := s.history.Known(history.LayerReadIOs)
	if len(known) == 0 {
		return nil
	}
	for i := range s.latest.Disks.Disks {
		if d := &s.latest.Disks.Disks[i]; d.Layer && slices.Contains(known, d.Name) {
			layers = append(layers, window.Layer{Name: d.Name, On: strings.Fields(d.On)})
		}
	}
	slices.SortStableFunc(layers, func(a, b window.Layer) int { return strings.Compare(a.Name, b.Name) })
	return layers
}

// devicesOf lists the block devices of each file system on which a job had files open since a moment, or shortly
// before.
func devicesOf(j *sample.Job, since time.Duration) (devices [][]string) {
	for i := range j.Mounts {
		m := &j.Mounts[i]
		if m.Device != "" && m.LastSeen >= since-window.MaxMountAge {
			devices = append(devices, strings.Fields(m.Device))
		}
	}
	return devices
}

// others lists the windows that overlap with w, with the disks that each reads from.
func (s *state) others(w *window.Window, concurrent Concurrent) []window.Other {
	others, open := concurrent(w)
	running := make([]*window.Window, len(open))
	for i, o := range open {
		other := *o
		other.End, other.EndEdge = w.End, w.EndEdge
		running[i] = &other
	}
	machine := func(o *window.Window) window.Machine { return s.machine(o, nil) }
	for i, from := range window.ReadFrom(s.history, running, machine) {
		others = append(others, window.Other{Window: running[i], Until: w.End.Mono, From: from})
	}
	return others
}

// markOwn marks the processes that belong to a window's job.
func (s *state) markOwn(list []window.Reader, job string) {
	for i := range list {
		list[i].Own = list[i].Own || job != "" && slices.ContainsFunc(s.latest.Jobs.Processes, func(p sample.Process) bool {
			return p.PID == list[i].PID && p.Job == job
		})
	}
}
