package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/page"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/store"
)

// Bounds of reading the store for a page.
const (
	storedStep  = 10 * time.Second // intervals of the store begin at multiples of it
	heldWindows = time.Hour        // how long windows that ended are in memory
	longWindow  = 6 * time.Hour    // a window that ends so much later than the time that is shown is found
	pastTime    = 10 * time.Second
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
// of a core at most, and pastTime. Then the newer part is missing, and the page says so.
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
	late := time.AfterFunc(pastTime, func() { _ = sample.Protect(func() { _ = from.Close() }) }) // its disk may hang
	var read time.Time                                                                           // of the last block
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
			read.Format(time.DateTime), pastTime)
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
