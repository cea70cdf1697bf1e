package monitor

import (
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/sample"
)

// eventsEvery is the time between two looks for what happens to the machine. A look at a few devices costs microseconds.
const eventsEvery = time.Second

// endsLate is how much later than by its own time a window's end may be known, as it waits for a GPU's driver: a storm is not
// called over before it is known which windows were in it.
const endsLate = time.Second

// watch looks for what happens to the machine, for as long as somebody listens. Monitor.mu is held for it.
type watch struct {
	alert.Watcher
	due       time.Duration
	failures  map[string]uint64 // by source, at the look before
	listeners []*func(alert.Event)
}

// OnEvent has tell called with what happens to the machine's devices and to its sources, each condition once when it
// begins and once when it is over, until forget is called. What began before anybody listened is told first. It is called
// on the goroutine that samples, or that ends a window, so it must not wait for anything.
func (m *Monitor) OnEvent(tell func(alert.Event)) (forget func()) {
	return listen(m, &m.watch.listeners, tell)
}

// happened gives what is to be told, and to whom, once a second. m.mu is held.
func (m *Monitor) happened() (told []alert.Event, listeners []*func(alert.Event)) {
	w := &m.watch
	now := m.stamp()
	if len(w.listeners) == 0 || now.Mono < w.due {
		return nil, nil
	}
	w.due = now.Mono + eventsEvery
	newest := m.latest
	newest.Ceilings = m.ceilings.All()
	told = w.Evaluate(now, &newest, w.failing(m.problems.counts()))
	return append(told, m.storms.Ended(sample.Stamp{Mono: now.Mono - endsLate, Wall: now.Wall.Add(-endsLate)})...), w.listeners
}

// calmed gives the storms that are over at the end of a window, which may show the next one: that the last one is over is
// told before. m.mu is held.
func (m *Monitor) calmed(at sample.Stamp) (told []alert.Event, listeners []*func(alert.Event)) {
	if len(m.watch.listeners) == 0 {
		return nil, nil
	}
	return m.storms.Ended(at), m.watch.listeners
}

func tellAll(told []alert.Event, listeners []*func(alert.Event)) {
	for _, e := range told {
		for _, tell := range listeners {
			(*tell)(e)
		}
	}
}

// failing lists the sources that have failed since the look before.
func (w *watch) failing(now map[string]Failure) (parts []alert.Part) {
	for source, f := range now {
		if before, known := w.failures[source]; known && f.Count > before {
			parts = append(parts, alert.Part{Name: "source " + source, Error: f.Last.Error()})
		}
		if w.failures == nil {
			w.failures = map[string]uint64{}
		}
		w.failures[source] = f.Count
	}
	return parts
}
