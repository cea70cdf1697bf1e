package sampling

import (
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/mount"
	"github.com/stallspan/stallspan/internal/window"
)

// Job is a tree of processes with a ledger of its own.
type Job struct {
	ID       string
	Pressure string       // the pressure scope in which it waits
	Own      bool         // that scope holds this job and nothing else
	Scope    window.Scope // of the reports of its windows

	// Leader is the thread whose time its ledgers divide; 0 if it is to be found out.
	Leader int

	// OnlyHeldGPUs limits its ledgers to the GPUs that its processes hold memory of, once these are known. There may be
	// as many such jobs as GPUs.
	OnlyHeldGPUs bool

	Visible *sample.VisibleGPUs // what limits its processes to some GPUs; nil for nothing

	Name sample.JobName // who it is; zero if unknown

	// OwnTime is OnlyHeldGPUs for a program that may use no GPU: as long as its processes hold memory of none, its own
	// time is divided. With OnlyHeldGPUs, too, it has ledgers on all GPUs besides: a window that lasts until it holds
	// memory has one from its begin.
	OwnTime bool
}

// job is a Job with what was learned of it.
type job struct {
	Job
	since time.Duration // its first reading
	over  time.Duration // its first reading without a process; 0 while it has one

	newest  time.Duration   // as sample.Process.Started: of the process that started last
	started []time.Duration // when processes were first seen that started later than the first ones; the newest
	mounts  []sample.Mount  // on no disk of this machine, with their newest use
	gpus    []string        // on which one of its processes has held memory

	leaders []int          // processes whose first threads lead, as in sample.Job
	drivers map[string]int // the process that holds memory of a GPU, by GPU
}

// jobs are the followed jobs.
type jobs struct {
	byID    map[string]*job
	changed bool // jobs or GPUs changed since the ledger got its targets
	added   bool // a job was added since the last reading of jobs
}

// Bounds of what is remembered of a job.
const (
	maxMounts = 64
	maxHeld   = 64
)

// Follow adds a job, and returns when its first reading is in the history.
func (r *Readings) Follow(j Job) {
	r.mu.Lock()
	r.now.follow(&job{Job: j, since: math.MaxInt64})
	r.mu.Unlock()
	r.config.Sources.Read(r.Append)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.endRound()
	if added := r.now.jobs.byID[j.ID]; added != nil {
		added.since = r.now.since(j.ID)
	}
}

// since returns from when on there are readings of a job that is followed now: earlier if it was a candidate.
func (s *state) since(id string) time.Duration {
	if zero, _, ok := s.history.Past(id); ok {
		return zero
	}
	return s.newest.Mono
}

// Unfollow removes a job. Later reports have no readings of it.
func (r *Readings) Unfollow(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.unfollow(id)
}

// Lead sets the thread whose time a job's ledgers divide.
func (r *Readings) Lead(id string, tid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.now.jobs.byID[id]; j != nil {
		j.Leader = tid
		r.now.jobs.changed = true
	}
}

// HeldGPUs returns the GPUs on which each process holds memory, as listed last.
func (r *Readings) HeldGPUs() map[int][]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := map[int][]string{}
	for _, p := range r.now.latest.GPUs.GPUProcesses {
		held[p.PID] = append(held[p.PID], p.GPU)
	}
	return held
}

// Name notes who a followed job is. An empty name, of a process that has ended, changes nothing.
func (r *Readings) Name(name sample.JobName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.name(name)
}

// NameTime notes whose the time of a followed job is that has no other name. Unlike Name, it does not change which of
// two jobs with the same process counts.
func (r *Readings) NameTime(name sample.JobName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.now.jobs.byID[name.ID]; j != nil && j.Name.Name == "" && name.Name != "" {
		r.now.times.name(name)
	}
}

func (s *state) name(name sample.JobName) {
	j := s.jobs.byID[name.ID]
	if j == nil || name.Name == "" || name.Equal(j.Name) {
		return
	}
	j.Name = name
	s.times.name(name)
	s.markFollowed(j, &name)
}

// Processes returns the living processes of a followed job, the oldest first.
func (r *Readings) Processes(id string) (pids []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.now.latest.Jobs.Processes {
		if p := &r.now.latest.Jobs.Processes[i]; p.Job == id {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// JobsOf returns the followed jobs that a process is in. It is in none that it only feeds.
func (r *Readings) JobsOf(pid int) (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.now.latest.Jobs.Processes {
		if p := &r.now.latest.Jobs.Processes[i]; p.PID == pid && !p.Feeder {
			ids = append(ids, p.Job)
		}
	}
	return ids
}

// HasProcess reports whether a followed job has a live process.
func (r *Readings) HasProcess(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := r.now.newestOf(id)
	return j != nil && j.Processes > 0
}

func (s *state) follow(j *job) {
	s.jobs.byID[j.ID] = j
	s.jobs.changed, s.jobs.added = true, true
	if j.Name.ID == "" {
		s.markFollowed(j, nil)
		return
	}
	s.times.name(j.Name)
	s.markFollowed(j, &j.Name)
}

func (s *state) markFollowed(j *job, name *sample.JobName) {
	s.journal.mark(recording.Mark{Op: recording.Follow, ID: j.ID, Scope: j.Pressure, OwnScope: j.Own, Visible: j.Visible,
		OnlyHeld: j.OnlyHeldGPUs, OwnTime: j.OwnTime, Name: name})
}

func (s *state) unfollow(id string) {
	s.times.leave(id, s.newest.Mono)
	s.divideGPUs(true)
	delete(s.jobs.byID, id)
	s.latest.Unfollow(id)
	s.schedule.unfollow(id)
	s.jobs.changed = true
	s.journal.mark(recording.Mark{Op: recording.Leave, ID: id})
}

// maxStarted bounds job.started: the workers of several epochs.
const maxStarted = 256

// learnStarts notes which processes of jobs are new.
func (all *jobs) learnStarts(readings []sample.Process, at time.Duration) {
	newest := map[*job]time.Duration{}
	for i := range readings {
		p := &readings[i]
		j := all.byID[p.Job]
		if j == nil || p.Feeder || p.Started <= j.newest {
			continue
		}
		newest[j] = max(newest[j], p.Started)
		if j.newest == 0 {
			continue
		}
		if len(j.started) == maxStarted {
			j.started = slices.Delete(j.started, 0, 1)
		}
		j.started = append(j.started, at)
	}
	for j, started := range newest {
		j.newest = started
	}
}

// learnEnds notes which jobs have no process.
func (all *jobs) learnEnds(readings []sample.Job, at time.Duration) {
	for i := range readings {
		switch j := all.byID[readings[i].ID]; {
		case j == nil:
		case readings[i].Processes > 0:
			j.over = 0
		case j.over == 0:
			j.over = at
		}
	}
}

// newestOf returns the newest reading of a job, or nil.
func (s *state) newestOf(id string) *sample.Job {
	i := slices.IndexFunc(s.latest.Jobs.Jobs, func(j sample.Job) bool { return j.ID == id })
	if i < 0 {
		return nil
	}
	return &s.latest.Jobs.Jobs[i]
}

// learnMounts remembers the mounts, on no disk of this machine, on which jobs have had files open.
func (all *jobs) learnMounts(readings []sample.Job) {
	for i := range readings {
		j := all.byID[readings[i].ID]
		if j == nil {
			continue
		}
		for _, found := range readings[i].Mounts {
			kind := mount.Kind(found.Type)
			if kind != mount.Network && kind != mount.Fuse || mount.HasBlockDevice(found) {
				continue
			}
			k := slices.IndexFunc(j.mounts, func(x sample.Mount) bool { return x.Point == found.Point })
			switch {
			case k >= 0:
				j.mounts[k] = found
			case len(j.mounts) < maxMounts:
				all.changed = all.changed || len(j.mounts) == 0
				j.mounts = append(j.mounts, found)
			}
		}
	}
}

// learnGPUs remembers the GPUs on which the processes of jobs hold memory. In a container the driver may number
// processes otherwise: then none match, and the GPUs of a job stay unknown.
func (all *jobs) learnGPUs(held []sample.GPUProcess, processes []sample.Process) {
	for i := range processes {
		j := all.byID[processes[i].Job]
		if j == nil || processes[i].Feeder { // its GPU is not the job's
			continue
		}
		for _, h := range held {
			if h.PID == processes[i].PID {
				all.changed = j.driven(h, held) || all.changed
			}
			if h.PID == processes[i].PID && len(j.gpus) < maxHeld && !slices.Contains(j.gpus, h.GPU) {
				j.gpus = append(j.gpus, h.GPU)
				all.changed = all.changed || j.OnlyHeldGPUs || j.OwnTime
			}
		}
	}
}

// driven notes that a process holds memory of a GPU, and reports whether another one did before.
func (j *job) driven(by sample.GPUProcess, held []sample.GPUProcess) bool {
	before, known := j.drivers[by.GPU]
	still := func(h sample.GPUProcess) bool { return h.GPU == by.GPU && h.PID == before }
	if known && slices.ContainsFunc(held, still) || !known && len(j.drivers) >= maxHeld {
		return false
	}
	if j.drivers == nil {
		j.drivers = map[string]int{}
	}
	j.drivers[by.GPU] = by.PID
	return true
}

// learnLeaders notes which threads lead. A job that has ended keeps them: its last time is divided later.
func (all *jobs) learnLeaders(readings []sample.Job) {
	for i := range readings {
		j := all.byID[readings[i].ID]
		if j != nil && len(readings[i].LeaderPIDs) > 0 && !slices.Equal(j.leaders, readings[i].LeaderPIDs) {
			j.leaders = slices.Clone(readings[i].LeaderPIDs)
			all.changed = true
		}
	}
}

// leader returns the thread that drives a GPU, the first one if it is not known which; 0 if none is known.
func (j *job) leader(gpu string, number int) int {
	if j.Leader != 0 {
		return j.Leader
	}
	if pid := j.drivers[gpu]; pid != 0 {
		return pid
	}
	if len(j.leaders) == 0 {
		return 0
	}
	return j.leaders[number%len(j.leaders)]
}

// holders returns the processes of each job that hold GPU memory.
func (all *jobs) holders(held []sample.GPUProcess, processes []sample.Process) map[string][]int {
	holders := map[string][]int{}
	for i := range processes {
		p := &processes[i]
		holds := func(h sample.GPUProcess) bool { return h.PID == p.PID }
		if all.byID[p.Job] != nil && !p.Feeder && slices.ContainsFunc(held, holds) {
			holders[p.Job] = append(holders[p.Job], p.PID)
		}
	}
	return holders
}

// visible leaves out the GPUs that the processes of a job cannot use.
func (j *job) visible(ids []string, gpus []sample.GPU) []string {
	visible, known := j.Visible.Among(gpus)
	if !known {
		return ids
	}
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !slices.Contains(visible, id) })
}

// targets lists one target for each job, and one for the whole machine, on each GPU.
func (all *jobs) targets(gpus []string, latest []sample.GPU) (targets []ledger.Target) {
	for _, gpu := range gpus {
		targets = append(targets, ledger.Target{GPU: gpu})
	}
	if len(gpus) == 0 {
		targets = append(targets, ledger.Target{})
	}
	for _, j := range all.byID {
		targets = j.targets(j.divided(gpus, latest), j.ownTime(gpus, latest), targets)
	}
	return targets
}

// divided returns the GPUs on which the time of a job is divided; none for a job whose own time alone is.
func (j *job) divided(gpus []string, latest []sample.GPU) []string {
	own := j.visible(gpus, latest)
	switch {
	case (j.OnlyHeldGPUs || j.OwnTime) && len(j.gpus) > 0:
		return slices.DeleteFunc(slices.Clone(own), func(id string) bool { return !slices.Contains(j.gpus, id) })
	case j.OwnTime && !j.OnlyHeldGPUs:
		return nil
	}
	return own
}

// ownTime reports whether the own time of a job is divided.
func (j *job) ownTime(gpus []string, latest []sample.GPU) bool {
	return j.OwnTime && len(j.gpus) == 0 || len(j.divided(gpus, latest)) == 0
}

// withoutGPU returns the jobs whose own time is divided, in a fixed order.
func (all *jobs) withoutGPU(gpus []string, latest []sample.GPU) (ids []string) {
	for id, j := range all.byID {
		if j.ownTime(gpus, latest) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// targets appends the targets of a job: its own time, or GPUs, or both.
func (j *job) targets(gpus []string, own bool, targets []ledger.Target) []ledger.Target {
	t := j.target()
	if own {
		t.Leader = j.leader("", 0)
		targets = append(targets, t)
	}
	for i, gpu := range gpus {
		t.GPU, t.Leader = gpu, j.leader(gpu, i)
		targets = append(targets, t)
	}
	return targets
}

func (j *job) target() ledger.Target {
	return ledger.Target{Job: j.ID, Pressure: j.Pressure, Own: j.Own, Remote: len(j.mounts) > 0}
}
