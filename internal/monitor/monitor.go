// Package monitor owns the sources, the sampling, the history and the windows of one machine, and ties them together:
// readings go into the history, the ledger follows them, and windows are cut out of both. The doors (agent, receiver)
// talk to a Monitor and hold no logic of their own.
package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/baseline"
	"github.com/stallspan/stallspan/internal/ceiling"
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cgroup"
	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/internal/source/pressure"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/window"
)

// Monitor watches one machine. It is safe for concurrent use.
type Monitor struct {
	config   Config
	disks    *disk.Source
	pressure *pressure.Source
	process  *process.Source
	groups   *cgroup.View
	sampler  *sample.Sampler
	history  *history.History
	problems problems

	gpus   *gpus           // nil where none are looked for
	health *health         // nil where drives are not asked
	book   *baseline.Store // nil where windows are not compared with earlier ones

	stop context.CancelFunc
	done sync.WaitGroup

	following sync.Mutex // held while a job comes or goes; taken before all other locks but attended's and lately's
	attended  attended
	lately    lately

	// mu is taken after the sampler's own lock, never before it.
	mu      sync.Mutex
	latest  sample.Snapshot
	newest  sample.Stamp // of all readings: the present moment of a recording
	jobs    map[string]*job
	stale   bool // jobs or GPUs came or went since the ledger was told
	ledger  ledger.Estimator
	waiting []Moment // edges of which a GPU has told nothing yet, in the order of their time
	track   window.Track
	dueAt   time.Duration // when windows that nobody ended are looked for next
	onEnd   []*func(*window.Report)
	watch   watch
	storms  alert.Storms
	growth  window.Growth
	kinds   kinds

	onDrives []*func([]sample.Drive)

	ceilings ceiling.Learner
	measured measured

	errands    errands
	looks      atomic.Int32 // that are under way
	scans      scans
	journal    journal
	edges      edges                 // of a recording
	normalizer sample.DiskNormalizer // of a recording's disks
}

// New prepares a monitor of this machine; Start begins to sample. A source that is missing or forbidden is told by
// Problems, and the others go on; New fails only when nothing can be watched at all or the config is wrong.
func New(config Config) (*Monitor, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	h, err := history.New(config.History)
	if err != nil {
		return nil, err
	}
	m := &Monitor{
		config: config, groups: cgroup.NewView(config.Root), history: h, jobs: map[string]*job{}, stale: true,
	}
	m.ledger = ledger.NewPressure(h)
	m.journal = journal{to: config.Journal, problems: &m.problems}
	if config.Recorded {
		m.latest.Boot = config.Boot
		m.sampler = sample.NewSampler(config.Interval, nil)
		return m, nil
	}
	m.latest.Boot = Boot(config.Root)
	if err := m.newHealth(); err != nil {
		return nil, err
	}
	sources := m.machine()
	if len(sources) == 0 {
		return nil, fmt.Errorf("nothing can be watched here: %w", errors.Join(m.problems.all()...))
	}
	m.sampler = sample.NewSampler(config.Interval, sources)
	return m, nil
}

// Start takes the first reading before it returns, so that a window may begin at once, and then samples until Stop.
func (m *Monitor) Start() {
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.openBaselines()
	m.firstMeasured()
	m.prefill()
	m.Tick()
	m.done.Go(func() { m.sampler.Run(ctx, m.take, m.tick) })
	if m.gpus != nil {
		m.done.Go(func() { m.gpus.stream.Run(ctx, m.takeGPUs) })
		m.gpus.wait()
	}
	if m.health != nil {
		m.health.ended = make(chan struct{})
		go func() { // owned by m.health: see end
			defer close(m.health.ended)
			m.runHealth(ctx)
		}()
	}
}

// Stop ends the sampling, waits for it, and closes what the sources keep open. Windows that are still open stay so:
// end them before. It may be called on a monitor that never started.
func (m *Monitor) Stop() {
	if m.stop != nil {
		m.stop()
		m.done.Wait()
		m.health.end()
	}
	m.errands.stop()
	m.book.Close()
	m.close()
}

// Tick takes one reading of everything into the history now.
func (m *Monitor) Tick() {
	m.sampler.Read(m.take)
	m.tick()
}

// take is the sampler's sink.
func (m *Monitor) take(source string, s *sample.Sample, err error) {
	m.problems.note(source, err)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.append(source, s)
}

// append takes a reading into the history. m.mu is held.
func (m *Monitor) append(source string, s *sample.Sample) {
	m.journal.reading(source, 0, s)
	m.learn(s)
	m.ceilings.Learn(s)
	m.problems.note("history", m.history.Append(s))
}

// overdueEvery is how often windows are looked for that nobody ended, and jobs that are over: there may be thousands.
const overdueEvery = 10 * time.Second

// tick follows a round of readings: the ledger splits what is new, and what nobody ended is ended.
func (m *Monitor) tick() {
	m.mu.Lock()
	m.round()
	now := m.stamp().Mono
	due := now >= m.dueAt
	var overdue []*window.Window
	if due {
		overdue, m.dueAt = m.track.Overdue(now), now+overdueEvery
	}
	happened, listeners := m.happened()
	m.mu.Unlock()
	tellAll(happened, listeners)
	for _, w := range overdue {
		_, _ = m.Cut(w.ID, m.Now()) // ErrUnknown: its owner ended it meanwhile
	}
	if due {
		m.leaveDead()
		m.againMeasured()
	}
}

// round has the ledger follow a round of readings. m.mu is held.
func (m *Monitor) round() {
	m.journal.mark(m.tickMark())
	m.advance()
}

// advance has the ledger split what is new. m.mu is held.
func (m *Monitor) advance() {
	if m.stale {
		m.setTargets()
	}
	var points []history.Point
	for _, at := range m.waiting {
		points = append(points, at.point())
	}
	reached, err := m.ledger.Advance(points)
	m.problems.note("history", err)
	m.waiting = slices.Delete(m.waiting, 0, reached)
}

// Root is the folder that stands for the machine's "/", "" for that itself.
func (m *Monitor) Root() string { return m.config.Root }

// Interval is the time between two readings.
func (m *Monitor) Interval() time.Duration { return m.config.Interval }

// Late is how many readings came more than one interval after their time.
func (m *Monitor) Late() uint64 { return m.sampler.Late() }

// Problems tells, in words, what could not be read so far: each problem once.
func (m *Monitor) Problems() []error { return m.problems.all() }

// Failures tells for each source that ever failed how often it did, and why the last time. The names are those of the
// sources: pressure, process, cpu, gpu, disk; history for a device that it had no room for.
func (m *Monitor) Failures() map[string]Failure { return m.problems.counts() }
