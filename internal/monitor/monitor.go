// Package monitor watches one machine: it wires the sampling of its sources, the following of jobs, the probes at the
// ends of windows, and the registry of windows.
package monitor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/detect/loads"
	"github.com/stallspan/stallspan/internal/helper"
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/monitor/follow"
	"github.com/stallspan/stallspan/internal/monitor/looking"
	"github.com/stallspan/stallspan/internal/monitor/probe"
	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/procfile"
	"github.com/stallspan/stallspan/internal/state/ceiling"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// Monitor watches one machine. It is safe for concurrent use.
type Monitor struct {
	Windows *windows.Registry
	Spans   *windows.Spans // reports of spans that other programs have ended
	Jobs    *follow.Jobs
	Probe   *probe.Probe
	Owners  *locate.Owners // whose the processes of the machine are

	config   Config
	sources  *sampling.Sources
	readings *sampling.Readings
	problems sampling.Problems
	judge    *windows.SlowJudge
	measured *probe.Measured // nil for none
	drives   *driveHealth    // nil for none
	names    *names          // nil for none
	looker   *looking.Looker // nil for none
	alerts   alerts
	hangs    receivers[bool]
	late     atomic.Uint64 // of procfile.Late
	due      atomic.Int64  // monotonic time in nanoseconds at which tick cleans up next

	stop context.CancelFunc
	done sync.WaitGroup
}

// Failure is how often a source could not be read in full, and the newest error.
type Failure = sampling.Failure

// Moment is a reading of every source for the edge of a window.
type Moment = sampling.Moment

// New prepares a monitor of this machine; Start starts it. A source that is missing or forbidden becomes one of the
// Problems, and the others are read. New fails only if the config is invalid.
func New(c Config) (*Monitor, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	m := &Monitor{config: c, Owners: locate.NewOwners(c.Root), sources: sampling.NoSources(c.Interval)}
	if r, ok := c.Reader.(*helper.Client); ok { // of a Tracer, what is refused is in Lacks
		r.OnFailure(func(err error) { m.problems.Note("rights", err) })
	}
	boot := c.Boot
	var live *sampling.Sources // nil for a recording
	if !c.Recorded {
		boot = Boot(c.Root)
		drives, err := newDriveHealth(c)
		if err != nil {
			return nil, err
		}
		m.drives = drives
		live = sampling.NewSources(sampling.SourceConfig{
			Interval: c.Interval, Root: c.Root, Reader: c.Reader, NVML: c.NVML, Schedule: c.Schedule,
			Tracing:     c.Tracing,
			Latency:     c.Latency,
			Accelerator: c.Accelerator,
		}, &m.problems)
		m.sources = live
	}
	disks := m.sources.Disks
	slow := c.Slow
	if c.Recorded { // a recording has its own limits
		slow = config.Slow{}
	}
	m.judge = windows.NewSlowJudge(slow, disks, m.problems.Note)
	var err error
	m.readings, err = sampling.New(sampling.Config{
		Interval: c.Interval, History: c.History, Boot: boot, Journal: c.Journal, Judge: m.judge, Sources: live,
	}, &m.problems)
	if err != nil {
		m.judge.Close()
		return nil, err
	}
	m.Probe = probe.New(c.Root, disks, c.Reader, func(err error) { m.problems.Note("windows", err) })
	m.Jobs = follow.New(c.Root, live, m.readings, &m.problems)
	if err := m.Jobs.Match(c.Cgroups); err != nil {
		m.judge.Close()
		return nil, err
	}
	if c.Jobs && !c.Recorded {
		m.Jobs.SearchUsers(c.Device, c.Reader)
	}
	if (c.Jobs || len(c.Cgroups) > 0) && !c.Recorded {
		m.names = newNames(c.Root, c.PodResources, m.Owners)
		m.Jobs.Names(m.names.of)
	}
	if slow.HasBaseline() {
		m.measured = m.Probe.NewMeasured(ceiling.PathNextTo(slow.Baseline), m.problems.Note, m.readings.SetMeasured)
	}
	owners := windows.Config{
		Readings: m.readings, Jobs: m.Jobs, Probe: m.Probe, Judge: m.judge, Recorded: c.Recorded,
		Alerts: &m.alerts, Reports: c.Reports, Note: func(err error) { m.problems.Note("windows", err) },
	}
	m.Windows = windows.New(owners)
	if c.Detect && !c.Recorded {
		found := m.loadsOnly
		if c.DetectAll {
			found = m.Windows.Detected
		}
		m.Jobs.Stirs()
		lc := looking.Config{
			Root: c.Root, Reader: c.Reader, Readings: m.readings, Jobs: m.Jobs, New: loads.New,
			Added: m.Jobs.Added(), GPUs: m.sources,
			Found: found, Owner: m.Owners.Client, Wanted: m.Windows.TakesDetected,
		}
		m.looker = looking.New(lc)
	}
	m.Spans = windows.NewSpans(m.readings, m.judge)
	return m, nil
}

// Start takes the first reading before it returns, so that a window may begin at once, and then samples until Stop.
func (m *Monitor) Start() {
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.measured.Start()
	m.Tick()
	tick := func() {
		if err := sample.Protect(m.tick); err != nil {
			m.problems.Note("windows", err)
		}
	}
	m.done.Go(func() { m.sources.Run(ctx, m.readings.Append, tick) })
	m.done.Go(func() {
		sample.Restart(ctx, func(err error) { m.problems.Note("sampling", err) }, func() { m.watchRounds(ctx) })
	})
	m.sources.WaitForGPUs()
	m.drives.start(ctx, m)
	if m.looker != nil {
		report := func(err error) { m.problems.Note("windows", err) }
		m.done.Go(func() { sample.Restart(ctx, report, func() { m.looker.Run(ctx) }) })
	}
	if m.names != nil {
		report := func(err error) { m.problems.Note("jobs", err) }
		m.done.Go(func() { sample.Restart(ctx, report, func() { m.followJobs(ctx) }) })
	}
}

// loadsOnly reports on the windows of the one kind whose precision, as measured, is enough to be on by default
// (docs/internals/results.md).
func (m *Monitor) loadsOnly(all []detect.Found) {
	m.Windows.Detected(slices.DeleteFunc(all, func(f detect.Found) bool { return f.Kind != window.ModelLoad }))
}

// jobsEvery is how often processes that hold memory of a GPU are looked for in the newest list of the driver, and those
// that use CUDA among all processes.
const jobsEvery = time.Second

// followJobs follows the cgroups that match and the processes that hold memory of a GPU or use CUDA, until ctx ends. A
// process that the driver lists for the first time is followed at once: it may load a model now.
func (m *Monitor) followJobs(ctx context.Context) {
	tick := time.NewTicker(jobsEvery)
	defer tick.Stop()
	for {
		m.Jobs.FollowCgroups(m.names.of)
		if m.config.Jobs {
			m.Jobs.FollowHolders(m.names.of)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-m.readings.NewHolders():
		}
	}
}

// How long End and Stop wait for what hangs. The last samples of GPUs take 4.5 s at most.
const (
	endWait  = 6 * time.Second
	stopWait = 5 * time.Second
)

// End closes a client and ends its windows as unfinished, with the detected ones if no other client takes them. It
// returns when all have their final reports, or after six seconds if a source hangs.
func (m *Monitor) End(c *windows.Client) {
	m.done.Add(1) // sources are closed after it, also if it is late
	if !sample.Within(endWait, func() {
		defer m.done.Done()
		if m.looker != nil && c.HasDetectedAlone() {
			m.looker.Close()
		}
		c.Close()
		c.EndAll(m.Now(), window.Outcome{Ended: "the end of the agent or Collector"})
	}) {
		m.problems.Note("windows", errors.New("those that are open cannot be ended, because a source hangs: they are lost"))
	}
}

// Stop stops the sampling, waits for it, and closes the sources. Windows that are open stay open: end them before. Stop
// may be called on a monitor that never started. It returns after six seconds if a part hangs, which is left behind.
func (m *Monitor) Stop() {
	if m.stop != nil {
		m.stop()
	}
	var baselines sync.WaitGroup // have a limit of their own
	baselines.Go(func() { _ = sample.Protect(m.judge.Close) })
	if !sample.Within(stopWait, m.close) {
		m.problems.Note("windows", errors.New("a source hangs, and is left behind"))
	}
	baselines.Wait()
}

// close waits for all goroutines, and closes the rest.
func (m *Monitor) close() {
	m.done.Wait()
	m.drives.wait()
	m.Windows.Close()
	m.Jobs.Close()
	m.names.close()
	m.Probe.Stop()
	if !m.config.Recorded {
		m.sources.Close()
	}
}

// Tick reads every source once into the history.
func (m *Monitor) Tick() {
	m.sources.Read(m.readings.Append)
	m.tick()
}

// cleanEvery is how often windows and jobs are checked for those that are over: there may be thousands.
const cleanEvery = 10 * time.Second

// tick follows a round of readings.
func (m *Monitor) tick() {
	m.readings.EndRound()
	m.nameLate()
	m.Windows.Resume()
	now := m.readings.Present()
	m.alerts.check(now, m)
	if due := m.due.Load(); int64(now.Mono) >= due && m.due.CompareAndSwap(due, int64(now.Mono+cleanEvery)) {
		m.Windows.EndOverdue()
		m.Jobs.RemoveDead()
		m.Jobs.SeeMoved("")
		m.measured.Refresh()
	}
}

// nameLate notes the processes for which the kernel does not answer, each once.
func (m *Monitor) nameLate() {
	list, next := procfile.Late(m.late.Load())
	m.late.Store(next)
	for _, err := range list {
		m.problems.Note("process", err)
	}
}

// Feed applies one entry of a recording. The newest reading so far is then the present moment of the monitor. Now and
// Windows work in between, best after a tick, when all readings lie close together. Recorded windows begin and end with
// the reports that they had. The error is windows.ErrUnknown for the end of a window whose start is missing. The next
// entry may be fed after any error. Feed is for a monitor with Config.Recorded, and not safe for concurrent use.
func (m *Monitor) Feed(e *recording.Entry) error {
	if e.Mark != nil {
		switch e.Mark.Op {
		case recording.Begin, recording.End, recording.Drop:
			return m.Windows.Replay(e.Mark)
		}
	}
	m.readings.Apply(e)
	return nil
}

// Processes returns the living processes of a followed job, the oldest first.
func (m *Monitor) Processes(job string) []int { return m.readings.Processes(job) }

// JobTimes returns the time of GPUs and jobs up to now, and who the jobs are: see sample.Snapshot.
func (m *Monitor) JobTimes() ([]sample.GPUTime, []sample.JobName) { return m.readings.JobTimes() }

// Now takes a reading for the windows that begin or end with it.
func (m *Monitor) Now() Moment { return m.readings.Now() }

// CatchUp requests the newest samples of the GPUs, and returns when they are in the history: after 50 ms at most.
func (m *Monitor) CatchUp() { m.sources.CatchUp() }

// Collect returns a copy of the newest readings, with the last readings of processes that ended since the previous
// call.
func (m *Monitor) Collect() sample.Snapshot { return m.readings.Collect() }

// History returns the readings of the past. Only the monitor appends to it.
func (m *Monitor) History() *history.History { return m.readings.History() }

// Inventory counts the devices of the newest readings.
func (m *Monitor) Inventory() sampling.Inventory { return m.readings.Inventory() }

// CheckSources returns an error if no device at all could be read. setting names the config key of the folder that
// stands for "/".
func (m *Monitor) CheckSources(setting string) error { return m.readings.CheckSources(setting) }

// Root returns the folder that stands for the machine's "/"; "" for "/" itself.
func (m *Monitor) Root() string { return m.config.Root }

// Interval returns the time between two readings.
func (m *Monitor) Interval() time.Duration { return m.config.Interval }

// Late returns how many ticks came more than one interval late.
func (m *Monitor) Late() uint64 { return m.sources.Late() }

// OperationsLeft returns how many operations of disks stallspan.disk.operation.duration lacks, because there are too
// many disks and jobs.
func (m *Monitor) OperationsLeft() uint64 { return m.sources.OperationsLeft() }

// Rounds returns how many rounds of readings are complete: it grows with each interval.
func (m *Monitor) Rounds() uint64 { return m.sources.Rounds() }

// hungAfter is how long no round of readings may be complete until that is a problem.
const hungAfter = 5 * time.Second

// RoundAge returns for how long no round of readings has been complete; 0 before the first, and for a recording.
func (m *Monitor) RoundAge() time.Duration {
	if m.sources.Last() == 0 {
		return 0
	}
	return sample.Now().Mono - m.sources.Last()
}

var errHung = errors.New("no round of readings has ended for five seconds: a source hangs, and " +
	"all of the numbers are old")

// watchRounds notes a sampling that hangs, once for each time, until ctx ends.
func (m *Monitor) watchRounds(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for was := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		is := m.RoundAge() > hungAfter
		if is && !was {
			m.problems.Note("sampling", errHung)
		}
		if is != was {
			m.hangs.emit(is)
		}
		was = is
	}
}

// OnHang calls emit with true when no round of readings has ended for five seconds, and with false when they go on,
// until unsubscribe is called. emit must not block.
func (m *Monitor) OnHang(emit func(hangs bool)) (unsubscribe func()) { return m.hangs.add(emit) }

// Problems returns what could not be read so far: each problem once.
func (m *Monitor) Problems() []error { return m.problems.All() }

// NewProblems returns the problems since an earlier call, which has returned next; 0 for all that are kept.
func (m *Monitor) NewProblems(earlier uint64) (list []error, next uint64) {
	return m.problems.Since(earlier)
}

// Note adds a problem of a part of the program that works for this monitor.
func (m *Monitor) Note(part string, err error) { m.problems.Note(part, err) }

// Failures returns the failures by source: pressure, process, cpu, gpu, disk; and history, for a device that it had no
// room for.
func (m *Monitor) Failures() map[string]Failure { return m.problems.Failures() }

// SaveBaselines waits until the file of baselines holds all windows so far: for five seconds at most. A write error is
// one of the Problems then.
func (m *Monitor) SaveBaselines() { m.judge.Save() }

// Boot returns the start of the machine below root, to the second; the zero time if it is unknown.
func Boot(root string) time.Time { return sampling.Boot(root) }

// OnEvent calls emit when a condition of the machine's devices or sources begins, and again when it is over, until
// unsubscribe is called. What began before is reported first. emit runs on the goroutine that samples, or that ends a
// window, so it must not block.
func (m *Monitor) OnEvent(emit func(alert.Event)) (unsubscribe func()) {
	return m.alerts.receivers.add(emit)
}
