package emit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// EventNames returns the names of all events, sorted.
func EventNames() (names []string) {
	for _, e := range semconv.Events {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names
}

// CheckEvent returns an error if there is no event of that name.
func CheckEvent(name string) error {
	names := EventNames()
	if slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("there is no event %.60q: the names are %s", name, strings.Join(names, ", "))
}

// testName is the name of everything in a test event.
const testName = "test"

// NewTestEvent returns a test event of that name, with all attributes of such an event. It shows where events go. Its
// body and an attribute mark it as a test. The error is that of CheckEvent.
func NewTestEvent(name string, at time.Time) (Event, error) {
	if err := CheckEvent(name); err != nil {
		return Event{}, err
	}
	e := testEvent(name, at)
	e.Body = "a test, nothing has happened: " + e.Body
	e.Attributes = append(e.Attributes, semconv.EventTestKey.Bool(true))
	return e, nil
}

func testEvent(name string, at time.Time) Event {
	start := sample.Stamp{Mono: time.Hour, Wall: at.Add(-time.Minute)}
	r := &window.Report{Window: window.Window{
		Kind: window.Custom, Name: testName, Source: window.Announced,
		Start: start, End: sample.Stamp{Mono: start.Mono + time.Minute, Wall: at},
	}, Verdict: window.StorageBound, Split: true, Storage: time.Minute, SlowReason: window.SlowStorage}
	switch name {
	case semconv.WindowSlowEvent.Name:
		return slow(r, SpanName(&r.Window, config.Spans{}))
	case semconv.IOStormEvent.Name:
		return storm(r, &window.Storm{Disk: testName, Windows: 2, Since: start.Mono})
	}
	for _, e := range testConditions(at) {
		if eventNames[e.Kind] == name {
			return Happened(e)
		}
	}
	return Event{Name: name, Time: at, Severity: Warn}
}

// testConditions returns a condition of each kind.
func testConditions(at time.Time) []alert.Event {
	gpu := &sample.GPU{ID: testName, Name: testName, Driver: testName}
	drive := &sample.Drive{ID: testName, Device: testName, Model: testName}
	return []alert.Event{
		{Kind: alert.GPUHot, At: at, GPU: gpu, Value: 90, Limit: 85, HasValue: true, Message: "a GPU is at 90 C"},
		{Kind: alert.GPUThrottled, At: at, GPU: gpu, Value: 0.5,
			Limit: alert.LimitsOf[alert.GPUThrottled].Raise, HasValue: true,
			Reason: sample.GPUThrottledHWThermal.String(), Message: "the clocks of a GPU were held down"},
		{Kind: alert.GPULost, At: at, GPU: gpu, Lost: true, Severe: true, Message: "a GPU can no longer be read"},
		{Kind: alert.GPUError, At: at, GPU: gpu, Code: 79, Count: 1, Severe: true, Message: "a GPU has reported XID 79"},
		{Kind: alert.DiskFailing, At: at, Drive: drive, Disk: testName, Severe: true, Message: "a drive is failing"},
		{Kind: alert.DiskSaturated, At: at, Disk: testName, Value: 8, Limit: 2, HasValue: true,
			Message: "a disk is saturated"},
		{Kind: alert.AgentDegraded, At: at, Part: testName, Message: "a part of this program fails"},
	}
}
