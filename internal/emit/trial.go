package emit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// EventNames lists the names of all events, sorted.
func EventNames() (names []string) {
	for _, e := range semconv.Events {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names
}

// CheckEvent says that there is no event of that name, with the nearest one, or nil.
func CheckEvent(name string) error {
	names := EventNames()
	if slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("there is no event %.60q: the names are %s", name, strings.Join(names, ", "))
}

// trialName is what everything in an event for a trial is called.
const trialName = "test"

// Trial is an event of that name with everything that such an event has, for somebody who wants to see where it goes. It
// says of itself that nothing has happened. The error says that there is no event of that name.
func Trial(name string, at time.Time) (Event, error) {
	if err := CheckEvent(name); err != nil {
		return Event{}, err
	}
	e := trial(name, at)
	e.Body = "a test, nothing has happened: " + e.Body
	e.Attributes = append(e.Attributes, semconv.EventTestKey.Bool(true))
	return e, nil
}

func trial(name string, at time.Time) Event {
	start := sample.Stamp{Mono: time.Hour, Wall: at.Add(-time.Minute)}
	r := &window.Report{Window: window.Window{
		Kind: window.Custom, Name: trialName, Start: start, End: sample.Stamp{Mono: start.Mono + time.Minute, Wall: at},
	}, Verdict: window.StorageBound, Finding: "It waited for storage.", SlowReason: window.SlowStorage}
	switch name {
	case semconv.WindowSlowEvent.Name:
		return slow(r)
	case semconv.IOStormEvent.Name:
		return storm(r, &window.Storm{Disk: trialName, Windows: 2, Since: start.Mono})
	}
	for _, e := range trials(at) {
		if eventNames[e.Kind] == name {
			return Happened(e)
		}
	}
	return Event{Name: name, Time: at, Severity: Warn}
}

// trials has one of each kind.
func trials(at time.Time) []alert.Event {
	gpu, drive := &sample.GPU{ID: trialName, Name: trialName, Driver: trialName}, &sample.Drive{ID: trialName, Device: trialName, Model: trialName}
	return []alert.Event{
		{Kind: alert.GPUHot, At: at, GPU: gpu, Value: 90, Limit: 85, HasValue: true, Message: "a GPU is at 90 C"},
		{Kind: alert.GPUThrottled, At: at, GPU: gpu, Value: 0.5, Limit: alert.LimitsOf[alert.GPUThrottled].Raise, HasValue: true,
			Reason: sample.GPUThrottledHWThermal.String(), Message: "the clocks of a GPU were held down"},
		{Kind: alert.GPULost, At: at, GPU: gpu, Lost: true, Severe: true, Message: "a GPU can no longer be read"},
		{Kind: alert.GPUError, At: at, GPU: gpu, Code: 79, Count: 1, Severe: true, Message: "a GPU has reported XID 79"},
		{Kind: alert.DiskFailing, At: at, Drive: drive, Disk: trialName, Severe: true, Message: "a drive is failing"},
		{Kind: alert.DiskSaturated, At: at, Disk: trialName, Value: 8, Limit: 2, HasValue: true, Message: "a disk has as much to do as it can"},
		{Kind: alert.AgentDegraded, At: at, Part: trialName, Message: "a part of this program fails"},
	}
}
