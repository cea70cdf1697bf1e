// Package windows is the registry of the windows of a machine: those that are open, and the reports of those that ended
// recently. It owns the span of each open window.
package windows

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/monitor/follow"
	"github.com/stallspan/stallspan/internal/monitor/probe"
	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
)

// Bounds of a Registry.
const (
	MaxOpen   = 4096               // windows open at the same time
	MaxEnded  = 4096               // reports kept
	Keep      = time.Hour          // how long a report is kept
	MaxLength = 7 * 24 * time.Hour // of a window, unless it is Owned: after that, its program has forgotten it
)

var (
	// ErrTooMany means that no more windows can be open at the same time.
	ErrTooMany = fmt.Errorf("%d windows are open: "+
		"end some, or look for a program that begins windows and never ends them", MaxOpen)
	// ErrShare means that one client has as many windows open as it may have.
	ErrShare = fmt.Errorf("%d of your windows are open: "+
		"end some, or look for a program that begins windows and never ends them", trust.NewPlaces(MaxOpen).Each())
	// ErrUnknown means that no open window has that id.
	ErrUnknown = errors.New("no open window has that id: it has ended, or it did not begin here; " +
		"stallspan ls lists the ids")
)

// Config connects a Registry with the parts of a monitor.
type Config struct {
	Readings *sampling.Readings
	Jobs     *follow.Jobs
	Probe    *probe.Probe
	Judge    *SlowJudge
	Recorded bool // windows are replayed from a recording
	Alerts   Alerts
	Note     func(error) // receives bugs

	// Reports receives the report of each window that ends, one after the other; nil for none. It must not wait for
	// another report.
	Reports func(*window.Report)
}

// Alerts receives I/O storms that are over.
type Alerts interface {
	Active() bool // reports whether there is a receiver
	Emit(all []alert.Event)
}

// Registry is safe for concurrent use.
type Registry struct {
	Reported Cache // windows that other programs have measured

	config   Config
	detected *detected

	reporter sync.WaitGroup // of reportAll
	read     chan struct{}  // see Resume

	mu  sync.Mutex // taken after the lock of the alerts, and before those of Readings, Probe and the baselines
	all table
}

// table is what a Registry guards.
type table struct {
	open   map[string]*openWindow
	places *trust.Places // of open
	ended  []retained    // in the order of their ends
	ending []*ending     // in the order of their calls
	storms alert.Storms
	growth window.Growth

	reporting bool // reportAll runs
	closed    bool
}

// openWindow is an open window with what ends with it.
type openWindow struct {
	window.Window
	client *Client           // nil for a window without a span
	link   trace.SpanContext // of a detected window: the trace that its job names, or invalid
	span   Span
	job    string // followed for this window; "" for none
}

// New returns a Registry without any window.
func New(c Config) *Registry {
	all := table{open: map[string]*openWindow{}, places: trust.NewPlaces(MaxOpen)}
	return &Registry{config: c, detected: newDetected(), read: make(chan struct{}, 1), all: all}
}

// Begin opens a window without a span at a moment and returns its id: w.ID, or a new one if that is "".
func (g *Registry) Begin(w window.Window, at sampling.Moment) (string, error) {
	o := &openWindow{Window: w}
	err := g.begin(o, at)
	return o.ID, err
}

func (g *Registry) begin(o *openWindow, at sampling.Moment) error {
	if !o.Kind.Valid() {
		return fmt.Errorf("%q is not a kind of window: use %s", o.Kind, window.KindChoices)
	}
	o.ID = cmp.Or(o.ID, NewID())
	if !g.config.Recorded {
		o.Seen = g.config.Probe.Path(&o.Window)
		if o.Job != "" {
			g.config.Jobs.SeeMoved(o.Job)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.all.add(o); err != nil {
		return err
	}
	g.config.Readings.BeginWindow(&o.Window, at)
	if !g.config.Recorded {
		g.config.Probe.WatchReaders(&o.Window)
	}
	return nil
}

func (t *table) add(o *openWindow) error {
	if t.open[o.ID] != nil {
		return fmt.Errorf("a window with the id %q is already open: choose another id", o.ID)
	}
	if err := t.places.Take(o.Client); errors.Is(err, trust.ErrShare) {
		return ErrShare
	} else if err != nil {
		return ErrTooMany
	}
	o.First = o.Kind == window.Epoch && !t.hasEpochLike(&o.Window)
	t.open[o.ID] = o
	return nil
}

// hasEpochLike reports whether another epoch of a window's run and job is open, or has ended within the hour.
func (t *table) hasEpochLike(w *window.Window) bool {
	for other := range t.windows(0, 0) {
		if other.Kind == window.Epoch && other.Run == w.Run && other.Job == w.Job && other.Client == w.Client {
			return true
		}
	}
	return false
}

// remove takes a window out of the open ones. It returns nil if that is not open.
func (t *table) remove(id string) *openWindow {
	o := t.open[id]
	if o != nil {
		delete(t.open, id)
		t.places.Release(o.Client)
	}
	return o
}

// retryPath probes the path of a load that ends, if the probe at its start took too long. What the page cache held at
// the start is lost. The path has just been read from, so the probe does not hang.
func (g *Registry) retryPath(id string) (seen window.Seen) {
	w, ok := g.find(id)
	if !ok || w.Kind != window.ModelLoad || w.Path == "" || w.Seen.Size != 0 || w.Seen.Device != "" {
		return seen
	}
	seen = g.config.Probe.PathAtEnd(&window.Window{Kind: w.Kind, Path: w.Path, PID: w.PID, Client: w.Client})
	seen.Cached, seen.HasCached = 0, false
	return seen
}

// minSampled is the size of a file from which a count of its pages by samples will do: eight samples.
const minSampled = 2 << 30

// cachedNow probes how much of a load's path is in the page cache as it ends, if that is on a mount without a disk: the
// kernel does not count what comes from a FUSE server. It returns nil if the file system takes too long.
func (g *Registry) cachedNow(id string) *uint64 {
	w, ok := g.find(id)
	if !ok || !w.Seen.HasCached || len(w.Seen.Under) > 0 || w.Seen.Device == window.InMemory {
		return nil
	}
	seen := g.config.Probe.PathAtEnd(&window.Window{Kind: w.Kind, Path: w.Path, PID: w.PID, Client: w.Client})
	if !seen.HasCached || seen.Sampled && seen.Size < minSampled {
		return nil
	}
	return &seen.Cached
}

func (g *Registry) find(id string) (w window.Window, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.all.open[id]
	if o == nil {
		return w, false
	}
	return o.Window, true
}

// ApproximateBounds marks an open window as one that contains more than its subject: see window.Window.
func (g *Registry) ApproximateBounds(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := g.all.open[id]; o != nil {
		o.ApproximateBounds = true
	}
}

// annotate adds attributes to an open window. Reports of it up to now keep the map that they have.
func (g *Registry) annotate(id string, attributes map[string]string) {
	if len(attributes) == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if o := g.all.open[id]; o != nil {
		all := make(map[string]string, len(o.Attributes)+len(attributes))
		maps.Copy(all, o.Attributes)
		maps.Copy(all, attributes)
		o.Attributes = all
	}
}

// Drop discards an open window without a report.
func (g *Registry) Drop(id string) {
	g.config.Probe.ForgetReaders(id)
	g.mu.Lock()
	o := g.all.remove(id)
	if o != nil {
		g.config.Readings.DropWindow(id)
	}
	g.mu.Unlock()
	if o != nil {
		o.drop()
	}
}

// leftFor is how long a window stays open whose process has ended: another one, such as a shell, may end it.
const leftFor = 10 * time.Second

// EndOverdue closes the windows that have been open for longer than MaxLength, and those whose process has ended: these
// end when it did.
func (g *Registry) EndOverdue() {
	now := g.config.Readings.Present().Mono
	left, overdue := map[string]time.Duration{}, map[string]string{} // when their processes ended; their jobs
	g.mu.Lock()
	for id, o := range g.all.open {
		if o.Owned {
			continue
		}
		if since, gone := g.config.Readings.Left(&o.Window); gone && now-since >= leftFor {
			left[id], overdue[id] = since, o.Job
		} else if now-o.Start.Mono > MaxLength {
			overdue[id] = o.Job
		}
	}
	g.mu.Unlock()
	for id, job := range overdue {
		var at sampling.Moment
		how := window.Outcome{Unfinished: true}
		if since, gone := left[id]; gone {
			at = g.config.Readings.Past(since)
			how.Ended, how.Failed = g.config.Jobs.HowEnded(job)
		} else {
			at = g.config.Readings.Now()
			how.Ended = fmt.Sprintf("nothing ended it for %.0f hours", MaxLength.Hours())
		}
		_, _ = g.EndSoon(id, at, how) // ErrUnknown: its owner ended it meanwhile
	}
}

// Open returns the number of open windows.
func (g *Registry) Open() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.all.open)
}

// Replay applies a recorded mark of a window. The error is ErrUnknown for the end of a window whose start is missing.
func (g *Registry) Replay(mark *recording.Mark) error {
	at, w := g.config.Readings.Recorded(mark)
	switch mark.Op {
	case recording.Begin:
		if !w.Kind.Valid() {
			return fmt.Errorf("the recorded window %s has the kind %q, which does not exist", mark.ID, w.Kind)
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		o := &openWindow{Window: w}
		if err := g.all.add(o); err != nil {
			return err
		}
		g.config.Readings.BeginWindow(&o.Window, at)
	case recording.End:
		facts := sampling.Ending{At: at, Outcome: mark.Outcome, NoSchedule: mark.NoSchedule,
			Seen: mark.Seen.Window(), Cached: mark.Cached,
			Limits: cmp.Or(mark.Limits, &window.Limits{})} // absent from older recordings, and where none were set
		facts.Readers = slices.Clip(mark.Readers[:min(len(mark.Readers), 2*probe.MaxReaders)])
		e, err := g.queue(mark.ID, facts)
		if err != nil {
			return err
		}
		_, err = e.final()
		return err
	case recording.Drop:
		g.Drop(mark.ID) // unknown if it began before the recording
	}
	return nil
}

// EndStorms returns the storms that are over at a moment.
func (g *Registry) EndStorms(at sample.Stamp) []alert.Event {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all.storms.Ended(at)
}

// openOf returns the ids of the open windows of a client.
func (g *Registry) openOf(c *Client) (ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, o := range g.all.open {
		if o.client == c {
			ids = append(ids, id)
		}
	}
	return ids
}

// NewID returns 64 random bits, like a span's id.
func NewID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program if the kernel gives no randomness
	return hex.EncodeToString(b[:])
}
