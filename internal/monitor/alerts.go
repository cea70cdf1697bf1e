package monitor

import (
	"slices"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/sample"
)

// alertsEvery is the time between two checks of the conditions. A check of a few devices costs microseconds.
const alertsEvery = time.Second

// maxEndDelay is how much later than its own time the end of a window may be processed, because it waits for a GPU's
// driver. A storm is not over before it is known which windows were part of it.
const maxEndDelay = time.Second

// alerts checks the conditions of the machine while there are receivers.
type alerts struct {
	receivers receivers[alert.Event]

	mu       sync.Mutex // guards the fields below
	watch    alert.Watcher
	due      time.Duration
	failures map[string]uint64 // by source, at the check before
}

// Active reports whether there are receivers.
func (a *alerts) Active() bool { return a.receivers.any() }

// Emit passes events on.
func (a *alerts) Emit(all []alert.Event) {
	for _, e := range all {
		a.receivers.emit(e)
	}
}

// check emits what has changed, once a second.
func (a *alerts) check(now sample.Stamp, m *Monitor) {
	if a.Active() {
		a.Emit(a.changes(now, m))
	}
}

func (a *alerts) changes(now sample.Stamp, m *Monitor) (changes []alert.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Mono < a.due {
		return nil
	}
	a.due = now.Mono + alertsEvery
	failing := a.failing(m.Failures())
	m.readings.View(func(latest *sample.Snapshot) { changes = a.watch.Evaluate(now, latest, failing) })
	over := sample.Stamp{Mono: now.Mono - maxEndDelay, Wall: now.Wall.Add(-maxEndDelay)}
	return append(changes, m.Windows.EndStorms(over)...)
}

// failing returns the sources that have failed since the check before.
func (a *alerts) failing(now map[string]sampling.Failure) (parts []alert.Part) {
	for source, f := range now {
		if before, known := a.failures[source]; known && f.Count > before {
			parts = append(parts, alert.Part{Name: "source " + source, Error: f.Last.Error()})
		}
		if a.failures == nil {
			a.failures = map[string]uint64{}
		}
		a.failures[source] = f.Count
	}
	return parts
}

// receivers are callbacks. The zero value is ready, and safe for concurrent use.
type receivers[T any] struct {
	mu  sync.Mutex // guards all
	all []*func(T) // replaced, never changed: emit may be reading the old one
}

func (r *receivers[T]) add(emit func(T)) (remove func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	added := &emit
	r.all = append(slices.Clone(r.all), added)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all = slices.DeleteFunc(slices.Clone(r.all), func(f *func(T)) bool { return f == added })
	}
}

func (r *receivers[T]) list() []*func(T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

func (r *receivers[T]) any() bool { return len(r.list()) > 0 }

func (r *receivers[T]) emit(value T) {
	for _, f := range r.list() {
		(*f)(value)
	}
}
