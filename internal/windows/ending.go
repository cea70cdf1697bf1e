package windows

import (
	"context"
	"fmt"
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

// ending is a window that has ended, with the facts that were taken then. One goroutine makes the reports of all, in
// the order of their ends.
type ending struct {
	*openWindow
	facts    sampling.Ending
	estimate *window.Report // the GPU's last moments are extrapolated; nil if the report need not wait for them
	due      time.Duration  // when it waits no longer

	done   chan struct{}  // closed when report or err is set, and the report is passed on
	report *window.Report // the final one
	err    error          // a bug
}

// final waits for the final report.
func (e *ending) final() (*window.Report, error) {
	<-e.done
	return e.report, e.err
}

// End closes a window that ended by itself at a moment, and returns its final report. It waits for the samples that a
// GPU's driver returns late. The error is ErrUnknown if the window is not open.
func (g *Registry) End(id string, at sampling.Moment) (*window.Report, error) {
	return g.Cut(id, at, window.Outcome{})
}

// Cut closes a window as End does, with how it ended.
func (g *Registry) Cut(id string, at sampling.Moment, how window.Outcome) (*window.Report, error) {
	e, err := g.end(id, at, how)
	if err != nil {
		return nil, err
	}
	return e.final()
}

// EndSoon closes a window as Cut does, and does not wait for a GPU: if samples of its last moments are missing, the
// result is an estimate. The final report follows, and goes where reports go.
func (g *Registry) EndSoon(id string, at sampling.Moment, how window.Outcome) (*window.Report, error) {
	e, err := g.end(id, at, how)
	switch {
	case err != nil:
		return nil, err
	case e.estimate != nil:
		return e.estimate, nil
	}
	return e.final()
}

// end takes the facts of a window at its end.
func (g *Registry) end(id string, at sampling.Moment, how window.Outcome) (*ending, error) {
	facts := sampling.Ending{At: at, Outcome: how, Readers: g.config.Probe.Readers(id, at.At.Mono)}
	g.config.Readings.CatchUp(at)
	facts.Cached = g.cachedNow(id)
	if how.Failed {
		facts.Ended += g.endedMounts(id)
	}
	if !how.Unfinished {
		facts.Seen = g.retryPath(id)
	}
	return g.queue(id, facts)
}

// endedMounts names the file systems of a window's job whose server has ended, as what may have made the job fail.
func (g *Registry) endedMounts(id string) (text string) {
	w, _ := g.find(id)
	mounts := g.config.Readings.MountsOf(w.Job)
	if len(mounts) == 0 {
		return ""
	}
	for _, m := range g.config.Probe.Ended(w.Client, mounts) {
		text += fmt.Sprintf("; the server of %s (%s from %s) has ended: start it and mount it again", m.Point, m.Type,
			m.Source)
	}
	return text
}

// queue hands a window over to the goroutine that makes reports.
func (g *Registry) queue(id string, facts sampling.Ending) (*ending, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.all.remove(id)
	if o == nil {
		return nil, ErrUnknown
	}
	e := &ending{openWindow: o, facts: facts, due: sample.Now().Mono + endWait, done: make(chan struct{})}
	if n := len(g.all.ending); g.config.Readings.LacksGPU(facts.At) ||
		n > 0 && g.all.ending[n-1].estimate != nil {
		e.estimate = g.config.Readings.EstimateEnd(e.Window, facts, g.all.concurrent(&e.Window, facts.At.At.Mono))
		e.estimate.Within = g.all.within(&e.estimate.Window)
	}
	g.all.ending = append(g.all.ending, e)
	if !g.all.reporting {
		g.all.reporting = true
		g.reporter.Go(func() { sample.Restart(context.Background(), g.config.Note, g.reportAll) })
	}
	return e, nil
}

// reportAll makes the reports of windows that have ended, until none is left.
func (g *Registry) reportAll() {
	for e, ready := g.next(); e != nil; e, ready = g.next() {
		if !ready {
			g.config.Readings.RequestGPUs()
			select {
			case <-g.read:
			case <-time.After(max(0, e.due-sample.Now().Mono)):
			}
			continue
		}
		if e.err = sample.Protect(func() { g.finish(e) }); e.err != nil {
			g.config.Note(e.err)
		}
		close(e.done)
	}
}

// next returns the window that ended first, and whether its report need not wait any longer; nil without any.
func (g *Registry) next() (e *ending, ready bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all.reporting = len(g.all.ending) > 0; !g.all.reporting {
		return nil, false
	}
	e = g.all.ending[0]
	return e, e.estimate == nil || g.all.closed || len(g.all.ending) > MaxOpen || sample.Now().Mono >= e.due ||
		!g.config.Readings.LacksGPU(e.facts.At)
}

// Resume is called after each round of readings: a report may have waited for it.
func (g *Registry) Resume() {
	select {
	case g.read <- struct{}{}:
	default:
	}
}

// Close makes the reports of windows that have ended, without the samples that are missing.
func (g *Registry) Close() {
	g.mu.Lock()
	g.all.closed = true
	g.mu.Unlock()
	g.Resume()
	g.reporter.Wait()
}

// awaitReports waits for the reports that need no samples, so that a list has each window that has ended. With late it
// waits for all of them.
func (g *Registry) awaitReports(late bool) {
	g.mu.Lock()
	var last *ending
	for _, e := range g.all.ending {
		if late || e.estimate == nil {
			last = e
		}
	}
	g.mu.Unlock()
	if last != nil {
		<-last.done
	}
}

// finish makes the final report of the window that ended first, and passes it on.
func (g *Registry) finish(e *ending) {
	over := g.report(e)
	g.config.Alerts.Emit(over) // the end of a storm is reported before the start of the next
	e.end(e.report)
	if g.config.Reports != nil {
		g.config.Reports(e.report)
	}
}

// learn uses a window for the findings of later ones. Where too many detected windows are false, they would be counted
// as epochs in which memory grew.
func (t *table) learn(r *window.Report) {
	if r.Source != window.Detected || detect.Precise(r.Kind) {
		t.growth.Learn(r)
	}
}

// report makes the report, and returns the storms that ended before it.
func (g *Registry) report(e *ending) (over []alert.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.all.ending = slices.Delete(g.all.ending, 0, 1)
	r := g.config.Readings.EndWindow(&e.Window, e.facts, g.all.concurrent(&e.Window, e.facts.At.At.Mono))
	r.Within = g.all.within(&r.Window)
	g.all.learn(r)
	if g.config.Alerts.Active() {
		over = g.all.storms.Ended(r.End)
	}
	g.all.findStorm(r)
	r.StartEdge, r.EndEdge = nil, nil // not needed any more: the report stays for an hour
	g.all.retain(r, g.config.Readings.Present().Mono)
	e.report = r
	return over
}
