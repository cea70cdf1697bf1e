package agent

import (
	"fmt"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Attributes of a window of steps, as the Python package sets them.
const (
	firstStep = "training.step.first"
	stepCount = "training.step.count"
)

// reached handles a step of a program without epochs.
func (f *follower) reached(step int) {
	now := sample.Now().Mono
	if f.over != nil {
		now = f.over.At.Mono
	}
	ends, begins := f.steps.reached(step, now)
	if !ends && !begins {
		return
	}
	at := f.over
	if at == nil {
		moment := f.monitor.Now()
		at = &moment
	}
	if ends {
		f.endInterval(*at)
		f.known = true
		f.endSteps(*at)
	}
	f.step = f.begin(window.Window{Kind: window.Steps, Name: "from step " + strconv.Itoa(f.steps.first),
		Attributes: map[string]string{firstStep: strconv.Itoa(f.steps.first)}}, *at)
}

// endSteps ends the open window of steps.
func (f *follower) endSteps(at monitor.Moment) {
	if f.step == "" {
		return
	}
	if f.last {
		f.monitor.Windows.ApproximateBounds(f.step)
	}
	f.client.Annotate(f.step, map[string]string{stepCount: strconv.Itoa(f.steps.last)})
	_, _ = f.client.EndAt(f.step, at, f.cut) // ErrUnknown: it was closed
	f.step = ""
}

// isKnown is called when an epoch begins or ends. No steps and intervals follow.
func (f *follower) isKnown(at monitor.Moment) {
	f.known = true
	f.drop(f.step)
	f.step = ""
	f.endInterval(at)
}

// watchIntervals begins and ends windows of one length, as long as nothing else is known of the program. stop returns
// when no more can begin.
func (f *follower) watchIntervals(length time.Duration) (stop func()) {
	if length == 0 {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(length)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				f.nextInterval()
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// nextInterval ends an interval and begins the next one. The first one began with the program.
func (f *follower) nextInterval() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known || f.over != nil {
		return
	}
	at := f.monitor.Now()
	if f.client.any.Load() {
		f.endInterval(at)
		return
	}
	if f.within == "" {
		f.within = f.beginInterval(f.began)
	}
	f.endInterval(at)
	f.within = f.beginInterval(at)
}

func (f *follower) beginInterval(at monitor.Moment) string {
	since := (at.At.Mono - f.began.At.Mono).Round(time.Second)
	name := fmt.Sprintf("from %d:%02d:%02d", since/time.Hour, since%time.Hour/time.Minute, since%time.Minute/time.Second)
	return f.begin(window.Window{Kind: window.Interval, Name: name}, at)
}

// endInterval ends the open interval.
func (f *follower) endInterval(at monitor.Moment) {
	if f.within == "" {
		return
	}
	_, _ = f.client.EndAt(f.within, at, f.cut) // ErrUnknown: it was closed
	f.within = ""
}
