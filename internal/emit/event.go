package emit

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// eventNames has the event names of the conditions. It is read-only.
var eventNames = map[alert.Kind]string{
	alert.GPUHot:        semconv.GPUTemperatureHighEvent.Name,
	alert.GPUThrottled:  semconv.GPUThrottledEvent.Name,
	alert.GPULost:       semconv.GPULostEvent.Name,
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
	return Event{
		Name: eventNames[e.Kind], Time: e.At, Severity: severityOf(&e), Was: wasOf(&e),
		Attributes: attrs, Body: UTF8(e.Message),
	}
}

// severityOf returns the severity of the log record: the end of a condition is only information.
func severityOf(e *alert.Event) Severity {
	if e.Resolved {
		return Info
	}
	return wasOf(e)
}

// wasOf returns the severity of the condition, whether it begins or ends.
func wasOf(e *alert.Event) Severity {
	if e.Severe {
		return Error
	}
	return Warn
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
