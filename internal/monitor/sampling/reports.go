package sampling

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Concurrent are the windows that overlap with one: those that ended, with the disks that they read from, and those
// that are open.
type Concurrent struct {
	Ended []window.Other
	Open  []*window.Window
}

// Judge compares the length of windows with limits. It is called with the lock of Readings held.
type Judge interface {
	Running(r *window.Report)              // of an open window
	Final(r *window.Report) *window.Limits // returns the limits for a recording; nil for none
}

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

// Ending is what is known of a window's end, as it was taken then.
type Ending struct {
	At Moment
	window.Outcome
	Readers []window.Reader // the processes that fetched most
	Cached  *uint64         // bytes of the window's path in the page cache, of a load from a mount without a disk
	Seen    window.Seen     // at the window's path, if the look at it at the begin took too long

	NoSchedule string         // of a recording: why the scheduler was not followed
	Limits     *window.Limits // of a recording: of the window's length; nil for those of the Judge
}

// apply sets how a window ended, and what was at its path then.
func (e *Ending) apply(w *window.Window) {
	if !w.Unfinished {
		w.Outcome = e.Outcome
	}
	if e.Seen.Size != 0 || e.Seen.Device != "" {
		e.Seen.Before = w.Seen.Before
		w.Seen = e.Seen
	}
	if e.Cached != nil {
		w.Seen.After, w.Seen.HasAfter = *e.Cached, true
	}
}

// EndWindow returns the final report of a window, and writes its end to the journal.
func (r *Readings) EndWindow(w *window.Window, e Ending, others Concurrent) *window.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.now
	s.markOwn(e.Readers, w.Job)
	s.schedule.recorded = cmp.Or(s.schedule.recorded, e.NoSchedule)
	e.apply(w)
	if len(s.accounts.waiting) > 0 {
		s.advance()
		w.StartEdge = s.accounts.extrapolated(w.StartEdge)
		e.At.edge = s.accounts.extrapolated(e.At.edge)
	}
	report := s.report(w, e.At, e.Readers, others)
	if e.Limits != nil {
		report.ApplyLimits(*e.Limits)
	} else {
		e.Limits = r.config.Judge.Final(report)
	}
	s.journal.mark(recording.Mark{
		Op: recording.End, Edge: e.At.number, At: &e.At.At, ID: w.ID, Outcome: e.Outcome,
		Readers: e.Readers, Seen: recording.NewSeen(&e.Seen), Cached: e.Cached, Limits: e.Limits,
		NoSchedule: s.schedule.missing(),
	})
	return report
}

// EstimateEnd returns what EndWindow would: what a GPU's driver has not yet returned is extrapolated. It marks the
// readers that belong to the window's job, because its processes may be gone later, and changes nothing else.
func (r *Readings) EstimateEnd(w window.Window, e Ending, others Concurrent) *window.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.now
	s.markOwn(e.Readers, w.Job)
	e.apply(&w)
	w.StartEdge, e.At.edge = s.accounts.extrapolated(w.StartEdge), s.accounts.extrapolated(e.At.edge)
	report := s.report(&w, e.At, e.Readers, others)
	r.config.Judge.Running(report)
	return report
}

// Report returns the report of a window up to a moment.
func (r *Readings) Report(w window.Window, at Moment, others Concurrent) *window.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := r.now.report(&w, at, nil, others)
	if tail, long := w.Tail(); long {
		report.Recent = window.Make(r.history, &tail, r.now.machine(&tail))
	}
	r.config.Judge.Running(report)
	return report
}

// Measure returns the report of a window that has its start and end. It leaves the window's job out unless the job was
// followed for all of that time. It does not consider other windows.
func (r *Readings) Measure(w *window.Window) *window.Report {
	r.mu.Lock()
	if j := r.now.jobs.byID[w.Job]; j == nil || w.Start.Mono < j.since {
		w.Job = ""
	}
	machine := r.now.machine(w)
	r.mu.Unlock()
	return window.Make(r.history, w, machine)
}

func (s *state) report(w *window.Window, at Moment, readers []window.Reader, others Concurrent) *window.Report {
	w.End, w.EndEdge = at.At, at.edge
	if at.next != nil {
		w.Next = at.next
	}
	gone := s.clientGone(w)
	if gone {
		w.Job = ""
	}
	machine := s.machine(w)
	machine.Readers, machine.ClientGone = readers, gone
	report := window.Make(s.history, w, machine)
	report.Who, report.Next = s.who(w), nil
	if len(report.From) > 0 {
		report.CountOthers(s.others(w, others))
	}
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

// lived is how long a process lives in a window that it does the work of. A client such as curl, or
// "$(stallspan mark begin | tee log)", ends at once.
const lived = time.Second

// clientGone reports whether a window's job is a client that announced it, named no process and has ended. Such a
// client did none of the window's work.
func (s *state) clientGone(w *window.Window) bool {
	if !w.ByClient || w.Job == "" {
		return false
	}
	j := s.jobs.byID[w.Job]
	return j == nil || j.over > 0 && j.over-w.Start.Mono < lived
}

// Left returns since when the process is gone that did the work of an open window; false while it runs, or if it is
// not known.
func (r *Readings) Left(w *window.Window) (since time.Duration, left bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.now.jobs.byID[w.Job]
	if j == nil || j.over == 0 || j.over-w.Start.Mono < lived {
		return 0, false
	}
	return j.over, true
}

// machine returns what a report needs besides the history.
func (s *state) machine(w *window.Window) window.Machine {
	machine := s.devices(w)
	if w.Job == "" || s.jobs.byID[w.Job] == nil {
		return machine
	}
	machine.Started = slices.Clone(s.jobs.byID[w.Job].started)
	machine.Waits = map[string]ledger.Waits{}
	for i, gpu := range window.Ledgers(s.history, w, &machine) {
		id := ledger.ID(w.Job, gpu)
		machine.Waits[gpu] = s.accounts.ledger.Waits(id, w.Start.Mono, w.End.Mono)
		if i == 0 {
			machine.Holds = s.accounts.ledger.Holds(id, w.Start.Mono, w.End.Mono)
		}
		if w.Kind == window.Epoch && i == 0 { // all GPUs have the same leading thread
			if steps, known := s.accounts.ledger.Steps(id, w.Start.Mono, w.End.Mono); known {
				machine.Steps = &steps
			}
		}
	}
	return machine
}

// devices returns what a report needs besides the history and what the job's threads did.
func (s *state) devices(w *window.Window) window.Machine {
	machine := window.Machine{GPUs: s.gpuIDs()}
	machine.NoSchedule = s.schedule.missing()
	_, machine.Pressure = s.history.Last(history.IOSome)
	machine.Lost = s.history.Left(history.GPUBusyTime, w.Start.Mono)
	machine.Leaves = s.history.Known(history.DiskReadIOs) // also disks that were removed since
	machine.Ceilings, machine.Cores = s.ceilings.All(), len(s.latest.Cores.Cores)
	machine.Drives = slices.Clone(s.latest.Drives.Drives) // a report may be made while the next ones arrive
	machine.Layers, machine.Lacks = s.layers(), s.diskLacks()
	if j := s.jobs.byID[w.Job]; j != nil {
		machine.Target = j.target()
		machine.GPUs = j.visible(machine.GPUs, s.latest.GPUs.GPUs)
		machine.Lost = j.visible(machine.Lost, s.latest.GPUs.GPUs)
		if j.OwnTime && len(j.gpus) == 0 {
			machine.GPUs, machine.Lost = nil, nil
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
			machine.Ended = reading.Ended
			machine.Limits, machine.Devices = reading.Limits, devicesOf(reading, w.Start.Mono)
			machine.Memory, machine.PageCache = reading.Memory, reading.PageCache != sample.PageCache{}
			for i := range reading.Mounts {
				machine.Direct = max(machine.Direct, reading.Mounts[i].Direct)
				machine.PageCache = machine.PageCache && reading.Mounts[i].Type != "zfs" // it has a cache of its own
			}
		}
		machine.NoJobReads = reading != nil && !reading.HasIO
		machine.HiddenReads = !j.Own && machine.NoJobReads
	}
	return machine
}

// MountsOf returns the file systems without a disk of this machine on which a job has had files open.
func (r *Readings) MountsOf(job string) []sample.Mount {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.now.jobs.byID[job]; j != nil {
		return slices.Clone(j.mounts)
	}
	return nil
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

// diskLacks returns what cannot be true of devices; nil if there is nothing.
func (s *state) diskLacks() (lacks window.DeviceFields) {
	for i := range s.latest.Disks.Disks {
		if d := &s.latest.Disks.Disks[i]; d.Has.Lacks() != 0 {
			if lacks == nil {
				lacks = window.DeviceFields{}
			}
			lacks[d.Name] = d.Has.Lacks()
		}
	}
	return lacks
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
func (s *state) others(w *window.Window, all Concurrent) []window.Other {
	running := make([]*window.Window, len(all.Open))
	for i, o := range all.Open {
		other := *o
		other.End, other.EndEdge = w.End, w.EndEdge
		running[i] = &other
	}
	others := slices.Clone(all.Ended)
	for i, from := range window.ReadFrom(s.history, running, s.devices) {
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
