package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/page"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/store"
	"github.com/stallspan/stallspan/semconv"
)

// Bounds of reading the store for a page.
const (
	storedStep  = 10 * time.Second // intervals of the store begin at multiples of it
	heldWindows = time.Hour        // how long windows that ended are in memory
	longWindow  = 6 * time.Hour    // a window that ends so much later than the time that is shown is found
	pastTime    = 10 * time.Second // for reading
)

// firstKnown is the first time that may be known: to the store, or else in memory.
func (v *viewer) firstKnown(now sample.Stamp) time.Duration {
	oldest := max(v.firstHeld(), 0)
	if v.server.past == nil {
		return oldest
	}
	if at, ok := v.server.past.Oldest(); ok {
		oldest = min(oldest, v.server.mono(at, now))
	}
	return max(oldest.Truncate(pageStep), v.latest-maxPageSpan)
}

// firstHeld is the time of the first reading in memory.
func (v *viewer) firstHeld() time.Duration {
	if first, ok := v.server.monitor.History().First(history.HostCPUTime); ok {
		return first
	}
	return 0
}

// readPast reads what the store has of the time of a page, if the time begins before what is in memory. It takes half
// of a core at most, and pastTime of the server. Then the newer part is missing, and the page says so.
func (v *viewer) readPast(ctx context.Context, now sample.Stamp) error {
	past := v.server.past
	if past == nil || v.origin >= max(v.firstHeld(), now.Mono-heldWindows) {
		return nil
	}
	if v.server.copies.Take(v.who.name) != nil {
		if v.following {
			v.cut = "What is not in memory is not shown: too many others read the history."
			return nil
		}
		return refuse(http.StatusServiceUnavailable, "too many requests for the history: try again in a few seconds")
	}
	start := now.Wall.Add(v.origin - now.Mono)
	end := start.Add(v.until - v.origin)
	made := page.NewPast(start, v.step, int((v.until-v.origin)/v.step), pageWindows,
		v.who.sees)
	from := v.copied(start, end.Add(longWindow))
	late := time.AfterFunc(v.server.pastTime, func() { _ = sample.Protect(func() { _ = from.Close() }) }) // its disk may hang
	var read time.Time                                                                                    // of the last block
	err := store.NewReader(from).Each(ctx, func(item *store.Item) {
		made.Add(item)
		if item.Rows != nil {
			read = time.Unix(item.Rows.Starts[len(item.Rows.Starts)-1], 0)
		}
	})
	late.Stop()
	_ = from.Close()
	slow := errors.Is(err, io.ErrClosedPipe)
	switch {
	case slow && read.Before(end):
		v.cut = fmt.Sprintf("The curves after %s are not complete: the history takes over %v to read. Choose less time.",
			read.Format(time.DateTime), v.server.pastTime)
	case err != nil && !slow:
		v.cut = fmt.Sprintf("The history cannot be read: %v", err)
	}
	v.past = made
	return nil
}

// copied returns the blocks between two times that the client may read. Copying ends when the reader is closed. If the
// disk hangs it does not, and keeps one of the places for copies, and no request.
func (v *viewer) copied(from, until time.Time) *io.PipeReader {
	out, in := io.Pipe()
	go func() { // owned by the place for copies, which it gives back
		defer v.server.copies.Release(v.who.name)
		var err error
		if failed := sample.Protect(func() { err = v.server.past.Copy(in, from, until, v.who.entries()) }); failed != nil {
			err = failed
		}
		_ = in.CloseWithError(err)
	}()
	return out
}

// ofMachine are the events that are about the machine, as its curves are. Others are about windows. It is read-only.
var ofMachine = map[string]bool{
	semconv.AgentDegradedEvent.Name:      true,
	semconv.DiskHealthEvent.Name:         true,
	semconv.DiskSaturatedEvent.Name:      true,
	semconv.GPUErrorEvent.Name:           true,
	semconv.GPULostEvent.Name:            true,
	semconv.GPUTemperatureHighEvent.Name: true,
	semconv.GPUThrottledEvent.Name:       true,
}

// sees reports whether a caller may read an event: of the machine, or about a window that it owns. Whose windows a
// storm is about is not known, so it is for privileged callers.
func (c *caller) sees(event, client string) bool { return ofMachine[event] || c.lists(client) }

// shows reports whether a caller may read an entry of the store: an event that it sees, or its own window.
func (c *caller) shows(e store.Entry) bool {
	if e.Kind == store.Event {
		return c.sees(nameOf(e.Text), e.Client)
	}
	return c.lists(e.Client)
}

// entries returns which entries of the store a caller may read, as Past.Copy takes it: nil for everything.
func (c *caller) entries() func(store.Entry) bool {
	if c.privileged() {
		return nil
	}
	return c.shows
}

// nameOf returns the name of an event in JSON; "" if it has none.
func nameOf(event []byte) string {
	var e struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(event, &e)
	return e.Name
}

// events are those on the board since the last call, of the time that is shown: the newest ones. left is how many older
// ones there were, and dropped whether the board has dropped more. It returns nil if the server has no events.
func (v *viewer) events() (found []page.Event, left int, dropped bool) {
	board := v.server.events.Board
	if board == nil {
		return nil, 0, false
	}
	gpu := page.Source{History: v.server.monitor.History(), Past: v.past}.GPUName
	found = []page.Event{} // an array for the page, also if it is empty
	for range alert.BoardSize {
		posted, next, missed, changed := board.Read(v.event)
		v.event = next
		for i, p := range posted {
			e, ok := page.NewEvent(p.Line, v.zero, gpu)
			dropped = dropped || i == 0 && missed > 0 && e.At > 0
			if ok && v.shows(e.At) && v.who.sees(e.Name, p.Client) {
				found = append(found, e)
			}
		}
		if changed != nil {
			break
		}
	}
	found, left = page.Newest(found, page.MaxEvents)
	return found, left, dropped
}

// shows reports whether a time, in seconds after the origin, is of the part that is shown.
func (v *viewer) shows(at float64) bool {
	return at >= 0 && (v.following || at < (v.end-v.origin).Seconds())
}

// firstEvents are the events that a page begins with: those of the store and those in memory. Some are in both.
// problem says what is missing, or is "".
func (v *viewer) firstEvents() (all []page.Event, problem string) {
	all, left, dropped := v.events()
	switch {
	case v.past != nil:
		all, left = v.withStored(all)
	case dropped:
		return all, "Older events are not shown: they are no longer in memory."
	}
	if left > 0 {
		problem = fmt.Sprintf("%d older events are not shown.", left)
	}
	return all, problem
}

// withStored adds the events of the store to those in memory.
func (v *viewer) withStored(all []page.Event) (more []page.Event, left int) {
	known := map[string]bool{}
	for _, e := range all {
		known[e.ID] = true
	}
	stored, older := v.past.Events(v.zero, page.Source{History: v.server.monitor.History(), Past: v.past}.GPUName)
	for _, e := range stored {
		if !known[e.ID] {
			all = append(all, e)
		}
	}
	all, left = page.Newest(all, page.MaxPastEvents)
	return all, left + older
}
