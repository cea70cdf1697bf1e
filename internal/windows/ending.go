package windows

import (
	"cmp"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// endWait is the longest time that the report of a window waits for the samples of its last moments, which a GPU's
// driver returns late. After that, they are extrapolated.
const endWait = 4500 * time.Millisecond

// ending is a window that has ended, and whose report waits for samples of a GPU.
type ending struct {
	*openWindow
	how      sampling.Ending
	judge    func(*window.Report) *window.Limits
	estimate *window.Report // the GPU's last moments are extrapolated
	due      time.Duration  // when it waits no longer

	done   chan struct{}  // closed when report is set
	report *window.Report // the final one
	over   []alert.Event  // storms that ended before it
}

// EndSoon closes a window at a moment, and returns at once. If a GPU's samples of its last moments are missing, the
// result is an estimate: the final report follows as soon as they are there, and goes where reports go. The error is
// ErrUnknown if the window is not open.
func (g *Registry) EndSoon(id string, at sampling.Moment, unfinished bool) (*window.Report, error) {
	e, err := g.begunToEnd(id, at, unfinished)
	if err != nil {
		return nil, err
	}
	return cmp.Or(e.estimate, e.report), nil
}

// begunToEnd closes a window as EndSoon does.
func (g *Registry) begunToEnd(id string, at sampling.Moment, unfinished bool) (*ending, error) {
	how := sampling.Ending{At: at, Readers: g.config.Probe.Readers(id, at.At.Mono), Unfinished: unfinished}
	g.config.Readings.CatchUp(at)
	var retried window.Seen
	how.Cached = g.cachedNow(id)
	if !unfinished {
		retried = g.retryPath(id)
	}
	g.Resolve() // what ended before is reported before
	e := &ending{how: how, done: make(chan struct{}), due: sample.Now().Mono + endWait,
		judge: func(r *window.Report) *window.Limits { return g.config.Judge.final(r, retried) }}
	finished, err := g.take(id, e)
	if err != nil {
		return nil, err
	}
	if finished {
		g.publish(e)
	}
	return e, nil
}

// take moves a window from the open ones to the ended ones, or to those that wait for a GPU.
func (g *Registry) take(id string, e *ending) (finished bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.openWindow = g.all.remove(id); e.openWindow == nil {
		return false, ErrUnknown
	}
	e.how.Concurrent = g.all.concurrent
	if !g.config.Readings.LacksGPU(e.how.At) || len(g.all.ending) >= MaxOpen {
		g.close(e)
		return true, nil
	}
	g.config.Readings.MarkOwn(&e.Window, &e.how) // its processes may be gone later
	g.all.ending = append(g.all.ending, e)
	e.estimate = g.config.Readings.EstimateEnd(e.Window, e.how)
	g.config.Judge.running(e.estimate)
	return false, nil
}

// await returns the final report of a window that has ended.
func (g *Registry) await(e *ending) *window.Report {
	for {
		select {
		case <-e.done:
			return e.report
		case <-time.After(max(0, e.due-sample.Now().Mono)): // no sample came since
			g.Resolve()
		}
	}
}

// Resolve makes the reports that need not wait any longer. It is called after each round of readings.
func (g *Registry) Resolve() {
	for e := g.nextResolved(); e != nil; e = g.nextResolved() {
		g.publish(e)
	}
}

// nextResolved closes the first window that need not wait any longer. It requests samples if others do.
func (g *Registry) nextResolved() *ending {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := sample.Now().Mono
	i := slices.IndexFunc(g.all.ending, func(e *ending) bool {
		return now >= e.due || !g.config.Readings.LacksGPU(e.how.At)
	})
	if i < 0 {
		if len(g.all.ending) > 0 {
			g.config.Readings.RequestGPUs()
		}
		return nil
	}
	e := g.all.ending[i]
	g.all.ending = slices.Delete(g.all.ending, i, i+1)
	g.close(e)
	return e
}

// close makes the final report of a window that is no longer among the open ones. It is called with the lock held.
func (g *Registry) close(e *ending) {
	judge := e.judge
	e.how.Judge = func(r *window.Report) *window.Limits {
		g.all.learn(r)
		return judge(r)
	}
	r := g.config.Readings.EndWindow(&e.Window, e.how)
	if g.config.Alerts.Active() { // the end of a storm is reported before the start of the next
		e.over = g.all.storms.Ended(r.End)
	}
	g.all.findStorm(r)
	r.StartEdge, r.EndEdge = nil, nil // not needed any more: the report stays for an hour
	g.all.retain(r, g.config.Readings.Present().Mono)
	e.report = r
}

// learn uses a window for the findings of later ones. Where too many detected windows are false, they would be counted
// as epochs in which memory grew.
func (t *table) learn(r *window.Report) {
	if r.Source != window.Detected || detect.Precise(r.Kind) {
		t.growth.Learn(r)
	}
}

// publish passes the report of a window on. It is called once, without the lock.
func (g *Registry) publish(e *ending) {
	g.config.Alerts.Emit(e.over)
	e.end(e.report)
	if g.config.Reports != nil {
		g.config.Reports(e.report)
	}
	close(e.done)
}

// endingOf returns the windows of a client that have ended and have no final report yet.
func (g *Registry) endingOf(c *Client) (waiting []*ending) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.all.ending {
		if e.client == c {
			waiting = append(waiting, e)
		}
	}
	return waiting
}
