package run

import (
	"sync"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/agent/internal/progress"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/window"
)

// follower turns the program's output into windows. Several goroutines read the streams. One lock covers reading a line
// and acting on it, so that windows begin and end in the order of the lines.
type follower struct {
	monitor *monitor.Monitor
	client  *announcedWindows

	mu     sync.Mutex
	reader *progress.Reader
	epoch  string            // id of the open epoch
	began  monitor.Moment    // where an epoch that ends without a start began
	ended  bool              // began is the end of another epoch, not the program's start
	loads  map[string]string // ids of the open loads, by model
	last   bool              // all lines have been read: open windows end with the program
	how    window.Outcome    // of the program: open windows end as it does
	over   *monitor.Moment   // when the program exited: lines that are read later were printed before
}

// line processes one line of the program's output. It reads the devices only if the line begins or ends a window.
func (f *follower) line(text []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.act(f.reader.Line(text))
}

// exited reads the devices at the program's exit. Output that is read later was printed before.
func (f *follower) exited() monitor.Moment {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.monitor.Now()
	f.over = &now
	return now
}

// close ends the open windows when all output has been read, as the program ended.
func (f *follower) close(how window.Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last, f.how = true, how
	f.act(f.reader.Close())
}

func (f *follower) act(events []progress.Event) {
	at := f.over
	for i := range events {
		e := &events[i]
		if e.Kind == progress.EpochProgress || f.announced(e) {
			continue
		}
		if at == nil {
			now := f.monitor.Now()
			at = &now // one reading for an end and the begin that follows it
		}
		switch e.Kind {
		case progress.EpochStart:
			f.epoch = f.begin(epochWindow(e), *at)
		case progress.EpochEnd:
			f.endEpoch(e, *at)
			f.began, f.ended = *at, true
		case progress.LoadBegin:
			w := window.Window{Kind: window.ModelLoad, Model: e.Model}
			if f.monitor.Probe.PathExists(e.Model) {
				w.Path = e.Model
			}
			f.loads[e.Model] = f.begin(w, *at)
		case progress.LoadEnd:
			f.end(f.loads[e.Model], e, *at)
			delete(f.loads, e.Model)
		}
	}
}

// announced reports whether the program announces windows of this kind itself. What a line has opened is dropped then.
func (f *follower) announced(e *progress.Event) bool {
	switch e.Kind {
	case progress.EpochStart, progress.EpochEnd:
		if !f.client.epochs.Load() {
			return false
		}
		f.drop(f.epoch)
		f.epoch = ""
	default:
		if !f.client.loads.Load() {
			return false
		}
		f.drop(f.loads[e.Model])
		delete(f.loads, e.Model)
	}
	return true
}

func (f *follower) drop(id string) {
	if id != "" {
		f.monitor.Windows.Drop(id)
	}
}

func epochWindow(e *progress.Event) window.Window {
	return window.Window{Kind: window.Epoch, Epoch: e.Epoch, HasEpoch: true}
}

func (f *follower) begin(w window.Window, at monitor.Moment) string {
	f.client.began()
	w.Source, w.Owned = window.Announced, true
	id, _, _ := f.client.BeginAt(w, at, trace.SpanContext{}) // fails only if thousands are open
	return id
}

func (f *follower) endEpoch(e *progress.Event, at monitor.Moment) {
	if f.epoch == "" && !e.Void {
		w := epochWindow(e)
		w.ApproximateBounds = !f.ended
		f.epoch = f.begin(w, f.began)
	}
	if f.last {
		f.monitor.Windows.ApproximateBounds(f.epoch)
	}
	f.end(f.epoch, e, at)
	f.epoch = ""
}

func (f *follower) end(id string, e *progress.Event, at monitor.Moment) {
	switch {
	case id == "":
	case e.Void && (!f.how.Unfinished || e.Kind == progress.EpochEnd):
		f.monitor.Windows.Drop(id) // what ends with a program that ended by itself was none
	default:
		_, _ = f.client.EndAt(id, at, f.how) // ErrUnknown: it exceeded the maximum length of a window, and was closed
	}
}
