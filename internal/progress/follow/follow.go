// Package follow makes windows of what a program prints.
package follow

import (
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/progress"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Follower turns the program's output into windows. Several goroutines read the streams. One lock covers reading a line
// and acting on it, so that windows begin and end in the order of the lines.
type Follower struct {
	monitor *monitor.Monitor
	client  *Windows
	job     string
	began   monitor.Moment // when the program started: the times of the reader count from here
	late    bool           // the program ran before that
	owner   window.Window  // the process and the client of its windows; empty if they are those of the job

	mu     sync.Mutex
	reader *progress.Reader
	latest time.Duration   // of the lines
	epoch  open            // the open epoch
	loads  map[string]open // the open loads, by model; at most one has no name
	files  *openedFiles    // since that one began; nil for none
	known  map[string]bool // files of models that earlier loads had open
	how    window.Outcome  // of the program: what ends with it ends so
	over   *monitor.Moment // when the program exited: lines that are read later were printed before
}

// New follows a program that started at a moment, as a job of the monitor.
func New(m *monitor.Monitor, client *Windows, reader *progress.Reader, job string, began monitor.Moment) *Follower {
	f := &Follower{monitor: m, client: client, reader: reader, job: job, began: began,
		loads: map[string]open{}, known: map[string]bool{}}
	client.follower.Store(f)
	return f
}

// NewLate follows a program that runs already. What it began before has no window, nor has what it leaves open.
func NewLate(m *monitor.Monitor, client *Windows, reader *progress.Reader, job string, now monitor.Moment) *Follower {
	f := New(m, client, reader, job, now)
	f.late = true
	return f
}

// open is an open window.
type open struct {
	id   string
	from time.Duration
}

// Line processes one line of the program's output.
func (f *Follower) Line(text []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.line(f.now(), text)
}

// line processes a line that was written at a time of the reader. A log's lines may come late, behind those of the
// output.
func (f *Follower) line(at time.Duration, text []byte) {
	f.latest = max(f.latest, at)
	var events []progress.Event
	if err := sample.Protect(func() { events = f.reader.Line(f.latest, text) }); err != nil {
		f.monitor.Note("progress", err) // the program's output goes on
	}
	f.act(events)
}

// now is the time of a line since the program's start.
func (f *Follower) now() time.Duration {
	if f.over != nil {
		return f.over.At.Mono - f.began.At.Mono
	}
	return sample.Now().Mono - f.began.At.Mono
}

// Exited reads the devices at the program's exit. Output that is read later was printed before.
func (f *Follower) Exited() monitor.Moment {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.monitor.Now()
	f.over = &now
	return now
}

// Close ends the open windows when all output has been read, as the program ended.
func (f *Follower) Close(how window.Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.how = how
	f.act(f.reader.Close(f.now()))
}

// Leave drops the open windows: the program goes on.
func (f *Follower) Leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(&f.epoch)
	for name := range f.loads {
		f.dropLoad(name)
	}
}

func (f *Follower) act(events []progress.Event) {
	for i := range events {
		e := &events[i]
		ends := f.over != nil && f.epoch.id != "" // with the program, and its begin was seen
		if f.announced(e) || f.late && e.Loose && !ends {
			continue
		}
		switch e.Kind {
		case progress.EpochBegin:
			f.epoch = f.begin(epochWindow(e), e.From)
		case progress.EpochEnd:
			f.endEpoch(e)
		case progress.EpochDrop:
			f.drop(&f.epoch)
		case progress.LoadBegin:
			f.loads[e.Model] = f.begin(f.loadWindow(e.Model), e.From)
			if e.Model == "" {
				f.files = lookForFiles(func() []int { return f.monitor.Processes(f.job) }, f.known)
			}
		case progress.LoadEnd:
			how := window.Outcome{}
			if e.Failed != "" {
				how = window.Outcome{Unfinished: true, Ended: fmt.Sprintf("the line %q", e.Failed), Failed: true}
			}
			f.endLoad(e.Model, e.To, how)
		case progress.LoadDrop:
			if f.how.Unfinished { // the program failed before the load's end
				f.endLoad(e.Model, f.now(), f.how)
			}
			f.dropLoad(e.Model)
		}
	}
}

// announced reports whether the program announces its epochs, or a load since this one began, itself. What a line has
// opened is dropped then.
func (f *Follower) announced(e *progress.Event) bool {
	switch e.Kind {
	case progress.EpochBegin, progress.EpochEnd, progress.EpochDrop:
		if !f.client.epochs.Load() {
			return false
		}
		f.drop(&f.epoch)
	default:
		if !f.client.loadedSince(f.began.At.Mono + e.From) {
			return false
		}
		f.dropLoad(f.loadKey(e.Model))
	}
	return true
}

// loadKey is the name under which the load that an event is about is open.
func (f *Follower) loadKey(name string) string {
	if _, open := f.loads[name]; !open {
		return ""
	}
	return name
}

func (f *Follower) drop(o *open) {
	if o.id != "" {
		f.monitor.Windows.Drop(o.id)
	}
	*o = open{}
}

func (f *Follower) loadWindow(model string) window.Window {
	w := window.Window{Kind: window.ModelLoad, Model: model}
	if f.monitor.Probe.PathExists(model) {
		w.Path = model
	}
	return w
}

// endLoad ends the load of a model, or else the one that began without a name. That one gets the name of the line that
// ends it, else of the file that was opened meanwhile: it is begun again.
func (f *Follower) endLoad(name string, to time.Duration, how window.Outcome) {
	key := f.loadKey(name)
	one := f.loads[key]
	delete(f.loads, key)
	if key == "" {
		if opened := f.files.stop(); name == "" {
			name = opened
		}
		f.files = nil
		if name != "" && one.id != "" {
			f.drop(&one)
			one = f.begin(f.loadWindow(name), one.from)
		}
	}
	f.end(one.id, to, how)
}

func (f *Follower) dropLoad(name string) {
	one := f.loads[name]
	f.drop(&one)
	delete(f.loads, name)
	if name == "" {
		f.files.stop()
		f.files = nil
	}
}

func epochWindow(e *progress.Event) window.Window {
	return window.Window{Kind: window.Epoch, Epoch: e.Epoch, HasEpoch: true, Epochs: e.Epochs, ApproximateBounds: e.Loose}
}

// moment is a time of the reader: now, or in the past.
func (f *Follower) moment(at time.Duration) monitor.Moment {
	if f.over != nil && at >= f.now() {
		return *f.over
	}
	if at <= 0 {
		return f.began
	}
	now := f.over
	if now == nil {
		reading := f.monitor.Now()
		now = &reading
	}
	past := sample.Stamp{Mono: f.began.At.Mono + at, Wall: f.began.At.Wall.Add(at)}
	if f.over == nil && now.At.Mono-past.Mono < fresh {
		return *now
	}
	return now.Before(past)
}

// fresh is how old a time may be for which the devices are read.
const fresh = 10 * time.Millisecond

func (f *Follower) begin(w window.Window, from time.Duration) open {
	f.client.began()
	w.PID, w.Client, w.Owned = f.owner.PID, f.owner.Client, true
	id, _, _ := f.client.Announce(w, f.moment(from), trace.SpanContext{}) // fails only if thousands are open
	return open{id, from}
}

// endEpoch ends the open epoch, which is begun again if it proved to be another one.
func (f *Follower) endEpoch(e *progress.Event) {
	if f.epoch.id == "" || f.epoch.from != e.From || e.Epochs > 1 {
		f.drop(&f.epoch)
		f.epoch = f.begin(epochWindow(e), e.From)
	}
	if e.Loose {
		f.monitor.Windows.ApproximateBounds(f.epoch.id)
	}
	f.end(f.epoch.id, e.To, window.Outcome{})
	f.epoch = open{}
}

func (f *Follower) end(id string, to time.Duration, how window.Outcome) {
	if id == "" {
		return
	}
	if to >= f.now() && !how.Unfinished {
		how = f.how
	}
	_, _ = f.client.EndAt(id, f.moment(to), how) // ErrUnknown: it exceeded the maximum length of a window, and was closed
}
