// Package sampling reads the sources of a machine, and holds what follows from the readings: the history, the ledgers
// of the followed jobs, the newest values, and the journal of a recording.
package sampling

import (
	"slices"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/process"
)

// Config configures Readings.
type Config struct {
	Interval time.Duration // between two readings
	History  history.Config
	Boot     time.Time // start of the machine; zero if unknown
	Journal  Journal   // nil for none
	Judge    Judge

	// Sources are nil for a recording: its readings arrive through Apply.
	Sources *Sources
}

// Journal records entries. It is implemented by *recording.Writer.
type Journal interface {
	Write(e *recording.Entry) error
}

// Readings holds the readings of one machine, and what follows from them. It is safe for concurrent use.
//
// Its content depends on the order of the journal's entries alone: a replay of the journal gives the same reports.
// Every change therefore takes effect, and is written to the journal, under one lock.
type Readings struct {
	config   Config
	problems *Problems
	history  *history.History

	holders chan struct{} // see NewHolders

	mu  sync.Mutex // taken after the lock of the sampler
	now state
}

// state is what Readings guards.
type state struct {
	history  *history.History
	problems *Problems
	process  *process.Source // nil for a recording
	schedule threads
	journal  journal
	accounts accounts
	jobs     jobs
	times    gpuTimes
	ceilings ceilings
	latest   sample.Snapshot
	newest   sample.Stamp          // of all readings: the present moment of a recording
	divided  time.Duration         // up to which the time of GPUs is divided
	edges    edges                 // of a recording
	disks    sample.DiskNormalizer // of a recording
}

// New prepares Readings without any reading.
func New(c Config, problems *Problems) (*Readings, error) {
	h, err := history.New(c.History)
	if err != nil {
		return nil, err
	}
	r := &Readings{config: c, problems: problems, history: h, holders: make(chan struct{}, 1)}
	r.now = state{
		history: h, problems: problems,
		journal:  journal{to: c.Journal, problems: problems},
		accounts: accounts{history: h, problems: problems, ledger: ledger.New(h)},
		schedule: threads{problems: problems, jobs: map[string]followed{}},
		jobs:     jobs{byID: map[string]*job{}, changed: true},
		times:    gpuTimes{names: map[string]sample.JobName{}},
		edges:    edges{known: map[uint64]*Moment{}},
	}
	if c.Sources != nil {
		r.now.process = c.Sources.Process
		r.now.schedule.moments = c.Sources.moments
		if c.Sources.follows {
			r.now.schedule.events = c.Sources.kernel
		}
	}
	r.now.latest.Boot = c.Boot
	return r, nil
}

// recorded reports whether the readings come from a recording.
func (r *Readings) recorded() bool { return r.config.Sources == nil }

// History returns the history. Only Readings appends to it.
func (r *Readings) History() *history.History { return r.history }

// Append adds a reading to the history. err is the reason why the reading is incomplete, or nil.
func (r *Readings) Append(source string, s *sample.Sample, err error) {
	r.problems.Note(source, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	added := s.GPUProcessesRead && r.now.hasNewHolder(s.GPUProcesses)
	r.now.append(source, s)
	if added {
		select {
		case r.holders <- struct{}{}:
		default: // it is known that there are new ones
		}
	}
}

// NewHolders receives after the driver has listed a process that it did not list before. It is for one receiver.
func (r *Readings) NewHolders() <-chan struct{} { return r.holders }

// EndRound completes a round of readings: the ledgers account for the time that all sources have reached.
func (r *Readings) EndRound() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.endRound()
}

// Tick reads every source once and completes the round.
func (r *Readings) Tick() {
	r.config.Sources.Read(r.Append)
	r.EndRound()
}

// Present returns the present moment: of a recording, the time of its newest reading.
func (r *Readings) Present() sample.Stamp {
	if !r.recorded() {
		return sample.Now()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now.newest
}

// View calls f with the newest readings. f must not keep or change them, and must not call Readings.
func (r *Readings) View(f func(*sample.Snapshot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	latest := r.now.latest
	latest.Ceilings = r.now.ceilings.All()
	f(&latest)
}

// Collect returns a copy of the newest readings, with the last readings of processes that ended since the previous
// call.
func (r *Readings) Collect() sample.Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	latest := r.now.latest.Clone()
	latest.Ceilings = r.now.ceilings.All()
	latest.GPUTimes, latest.JobNames = r.now.times.snapshot()
	latest.GPUTotals = r.now.times.totals()
	r.now.latest.Forget()
	return latest
}

// JobTimes returns the time of GPUs and jobs up to now, and who the jobs are.
func (r *Readings) JobTimes() ([]sample.GPUTime, []sample.JobName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now.times.snapshot()
}

// hasNewHolder reports whether a list of the driver has a process that the newest one before has not.
func (s *state) hasNewHolder(list []sample.GPUProcess) bool {
	return slices.ContainsFunc(list, func(p sample.GPUProcess) bool {
		same := func(old sample.GPUProcess) bool { return old.PID == p.PID }
		return !slices.ContainsFunc(s.latest.GPUs.GPUProcesses, same)
	})
}

func (s *state) append(source string, reading *sample.Sample) {
	if source == latencySource && len(reading.Latencies) == 0 {
		return // nine readings of ten
	}
	s.schedule.arch(reading)
	s.journal.reading(source, 0, reading)
	s.learn(reading)
	s.ceilings.Learn(reading)
	s.problems.Note("history", s.history.Append(reading))
}

// observe adds a reading to an edge. The history does not keep it.
func (s *state) observe(edge *history.Edge, reading *sample.Sample) {
	s.learn(reading)
	s.history.Observe(edge, reading)
}

// learn keeps a reading as the newest of its kind.
func (s *state) learn(reading *sample.Sample) {
	if len(reading.GPUs) > 0 && gpusChanged(s.latest.GPUs.GPUs, reading.GPUs) {
		s.jobs.changed = true
	}
	if reading.At.Mono > s.newest.Mono && !reading.Empty() { // a replay has no empty ones
		s.newest = reading.At
	}
	s.latest.Learn(reading)
	s.jobs.learnMounts(reading.Jobs)
	s.jobs.learnLeaders(reading.Jobs)
	s.jobs.learnEnds(reading.Jobs, reading.At.Mono)
	s.jobs.learnStarts(reading.Processes, reading.At.Mono)
	if reading.Schedule != nil {
		s.accounts.ledger.Learn(reading.Schedule)
	}
	if reading.Moments != nil {
		s.accounts.ledger.Look(reading.Moments)
	}
	if began := s.schedule.sync(reading, s.jobs.byID); began || s.jobs.changed { // a program's first moments count
		s.schedule.lead(s.jobs.targets(s.gpuIDs(), s.latest.GPUs.GPUs))
	}
	if len(reading.Jobs) > 0 && s.jobs.added { // the first report may be due before the driver lists its processes again
		s.jobs.learnGPUs(s.latest.GPUs.GPUProcesses, s.latest.Jobs.Processes)
		s.noteHolders()
		s.jobs.added = false
	}
	if reading.GPUProcessesRead {
		s.noteHolders()
		s.jobs.learnGPUs(reading.GPUProcesses, s.latest.Jobs.Processes)
	}
	if reading.GPUProcessesRead && s.process != nil {
		for job, pids := range s.jobs.holders(reading.GPUProcesses, s.latest.Jobs.Processes) {
			s.process.Lead(job, pids)
		}
	}
}

func (s *state) endRound() {
	s.journal.mark(recording.Mark{Op: recording.Tick, Ceilings: s.ceilings.apply()})
	s.advance()
}

// advance accounts for the time that all sources have reached.
func (s *state) advance() {
	if s.jobs.changed {
		targets := s.jobs.targets(s.gpuIDs(), s.latest.GPUs.GPUs)
		s.accounts.ledger.SetTargets(targets)
		s.schedule.lead(targets)
		s.jobs.changed = false
	}
	s.accounts.advance()
	s.endHolds()
	s.divideGPUs(false)
}

// divideGPUs divides the time of GPUs up to the moment that the ledgers have reached: once a second, which is how often
// a GPU's driver returns its samples, or at once. It is called with each round, and not when the result is wanted: a
// replay has the same rounds.
func (s *state) divideGPUs(now bool) {
	to, known := s.history.Last(history.LedgerBusy)
	if !known || to == s.divided || !now && to.Truncate(time.Second) == s.divided.Truncate(time.Second) {
		return
	}
	s.divided = to
	s.times.advance(s.history, to, s.newest, s.jobs.byID, s.jobs.withoutGPU(s.gpuIDs(), s.latest.GPUs.GPUs))
}

// noteHolders notes which jobs hold GPUs now.
func (s *state) noteHolders() { s.times.learn(s.newest.Mono, &s.latest, s.jobs.byID) }

// endHolds ends the holds of jobs whose processes have all ended, before the driver lists its processes again.
func (s *state) endHolds() {
	for i := range s.latest.Jobs.Jobs {
		if j := &s.latest.Jobs.Jobs[i]; j.Processes == 0 {
			s.times.leave(j.ID, s.newest.Mono)
		} else {
			s.times.stay(j.ID)
		}
	}
}
