package emit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// eventNames has the event names of the conditions. It is read-only.
var eventNames = map[alert.Kind]string{
	alert.GPUHot:        semconv.GPUTemperatureHighEvent.Name,
	alert.GPUThrottled:  semconv.GPUThrottledEvent.Name,
	alert.GPULost:       semconv.GPULostEvent.Name,
	alert.GPUReleased:   semconv.GPUReleasedEvent.Name,
	alert.GPUError:      semconv.GPUErrorEvent.Name,
	alert.DiskFailing:   semconv.DiskHealthEvent.Name,
	alert.DiskVanished:  semconv.DiskHealthEvent.Name,
	alert.DiskSaturated: semconv.DiskSaturatedEvent.Name,
	alert.AgentDegraded: semconv.AgentDegradedEvent.Name,
	alert.IOStorm:       semconv.IOStormEvent.Name,
}

// Happened returns the event for a condition that has begun or ended.
func Happened(e alert.Event) Event {
	attrs := make(list, 0, 8)
	if e.GPU != nil {
		attrs.gpu(e.GPU)
	}
	switch e.Kind {
	case alert.GPUHot:
		where := sensorChip
		if e.Memory {
			where = sensorMemory
		}
		attrs.add(where)
	case alert.GPUThrottled:
		if reason, known := throttleReasons[e.Reason]; known {
			attrs.add(places[reason].with[0])
		}
	case alert.GPULost:
		attrs.state(&e)
	case alert.GPUError:
		attrs.add(semconv.ErrorTypeKey.String("xid_" + strconv.Itoa(e.Code)))
		attrs.add(semconv.EventCountKey.Int64(int64(e.Count)))
	case alert.DiskFailing, alert.DiskVanished:
		attrs.text(semconv.HwIDKey, cmp.Or(e.Drive.ID, e.Disk))
		attrs.text(semconv.HwModelKey, e.Drive.Model)
		attrs.state(&e)
		attrs.add(semconv.SystemDeviceNameKey.String(UTF8(e.Disk)))
	case alert.DiskSaturated:
		attrs.add(semconv.SystemDeviceNameKey.String(UTF8(e.Disk)))
	case alert.IOStorm:
		attrs.add(semconv.IOStormWindowsKey.Int64(int64(e.Count)))
		attrs.add(semconv.SystemDeviceNameKey.String(UTF8(e.Disk)))
	case alert.AgentDegraded:
		attrs.add(semconv.AgentPartKey.String(UTF8(e.Part)))
	}
	if e.HasValue {
		attrs.add(semconv.EventValueKey.Float64(e.Value))
		attrs.add(semconv.EventLimitKey.Float64(e.Limit))
	}
	if e.Resolved {
		attrs.add(semconv.EventResolvedKey.Bool(true))
		attrs.add(semconv.EventBeganKey.String(e.Began.UTC().Format(time.RFC3339Nano)))
	}
	was := Warn
	if e.Severe {
		was = Error
	}
	now := was
	if e.Resolved {
		now = Info
	}
	return Event{
		Name: eventNames[e.Kind], Time: e.At, Severity: now, Was: was,
		Attributes: attrs, Body: UTF8(e.Message),
	}
}

// throttleReasons maps the names of reasons in readings to quantities. It is read-only.
var throttleReasons = func() map[string]sample.GPUQuantity {
	all := map[string]sample.GPUQuantity{}
	for q := sample.GPUThrottledPower; q <= sample.GPUThrottledReliability; q++ {
		all[q.String()] = q
	}
	return all
}()

func (l *list) gpu(g *sample.GPU) {
	l.text(semconv.HwIDKey, g.ID)
	l.text(semconv.HwNameKey, g.Name)
	l.text(semconv.HwDriverVersionKey, g.Driver)
}

// state adds the current state of a device.
func (l *list) state(e *alert.Event) {
	switch {
	case e.Resolved:
		l.add(semconv.HwStateOK)
	case e.Kind == alert.GPULost && !e.Lost:
		l.add(semconv.HwStateDegraded)
	case e.Kind == alert.DiskFailing && e.Drive.Status == sample.DriveFailing:
		l.add(semconv.HwStatePredictedFailure)
	default:
		l.add(semconv.HwStateFailed)
	}
}

// storm returns the event of an I/O storm that was found at the end of a window.
func storm(r *window.Report, s *window.Storm) Event {
	return Event{
		Name: semconv.IOStormEvent.Name, Time: r.Wall(s.Since), Severity: Warn,
		Attributes: list{
			semconv.IOStormWindowsKey.Int(s.Windows),
			semconv.SystemDeviceNameKey.String(UTF8(s.Disk)),
		},
		Body: UTF8(fmt.Sprintf(
			"%d windows read from %s at once, and two of them at least were slow: stagger the starts", s.Windows, s.Disk)),
	}
}

// machineEvents are those about the machine, as its curves are. Others are about windows. It is read-only.
var machineEvents = map[string]bool{
	semconv.AgentDegradedEvent.Name:      true,
	semconv.DiskHealthEvent.Name:         true,
	semconv.DiskSaturatedEvent.Name:      true,
	semconv.GPUErrorEvent.Name:           true,
	semconv.GPULostEvent.Name:            true,
	semconv.GPUReleasedEvent.Name:        true,
	semconv.GPUTemperatureHighEvent.Name: true,
	semconv.GPUThrottledEvent.Name:       true,
}

// OfMachine reports whether events of a name are about the machine.
func OfMachine(name string) bool { return machineEvents[name] }

// TestLane is the lane of test events.
const TestLane = "test"

// Lane returns whose room an event takes: "" for the machine, TestLane, or that of a client. See trust.Queue.
func (e *Event) Lane() string {
	switch {
	case e.Test():
		return TestLane
	case OfMachine(e.Name):
		return ""
	}
	return trust.Lane(e.Client)
}

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
	}, Judgement: window.Judgement{Verdict: window.StorageBound, SlowReason: window.SlowStorage}, Ledger: window.Ledger{Split: true, Storage: time.Minute}}
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
		{Kind: alert.GPUReleased, At: at, GPU: gpu, Message: "a GPU is released"},
		{Kind: alert.GPUError, At: at, GPU: gpu, Code: 79, Count: 1, Severe: true, Message: "a GPU has reported XID 79"},
		{Kind: alert.DiskFailing, At: at, Drive: drive, Disk: testName, Severe: true, Message: "a drive is failing"},
		{Kind: alert.DiskSaturated, At: at, Disk: testName, Value: 8, Limit: 2, HasValue: true,
			Message: "a disk is saturated"},
		{Kind: alert.AgentDegraded, At: at, Part: testName, Message: "a part of this program fails"},
	}
}
