package emit_test

import (
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// start is the beginning of the conditions.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// over is a condition that is over.
func over(kind alert.Kind) alert.Event {
	e := alert.Event{
		Kind: kind, Resolved: true, At: start.Add(time.Hour), Began: start, Message: "it is over", Value: 70, Limit: 85,
		HasValue: true,
		Reason:   "throttled_thermal", Disk: "sda", Part: "export",
	}
	switch kind {
	case alert.DiskFailing, alert.DiskVanished:
		e.Drive, e.HasValue = &sample.Drive{ID: "wwn-1", Device: "sda", Model: "M"}, false
	case alert.GPULost, alert.GPUReleased, alert.GPUHot, alert.GPUThrottled, alert.GPUError:
		e.GPU, e.HasValue = &sample.GPU{ID: "GPU-1", Name: "one", Driver: "1"}, kind == alert.GPUHot ||
			kind == alert.GPUThrottled
		e.Code, e.Count = 79, 3
	case alert.AgentDegraded, alert.IOStorm:
		e.HasValue, e.Count = false, 2
	}
	return e
}

func TestHappened(t *testing.T) {
	value := func(e emit.Event, key attribute.Key) attribute.Value {
		for _, kv := range e.Attributes {
			if kv.Key == key {
				return kv.Value
			}
		}
		return attribute.Value{}
	}
	hung := alert.Event{Kind: alert.GPULost, At: start, Severe: true, GPU: &sample.GPU{ID: "GPU-1"}, Message: "bytes \xff"}
	e := emit.Happened(hung)
	if e.Name != semconv.GPULostEvent.Name || e.Severity != emit.Error ||
		value(e, semconv.HwStateKey).AsString() != "degraded" || strings.Contains(e.Body, "\xff") {
		t.Errorf("hung GPU: got %+v, want degraded and valid UTF-8", e)
	}
	hung.Lost = true
	if e := emit.Happened(hung); value(e, semconv.HwStateKey).AsString() != "failed" {
		t.Errorf("lost GPU: got %+v, want failed", e)
	}
	e = emit.Happened(over(alert.GPULost))
	if e.Severity != emit.Info || !value(e, semconv.EventResolvedKey).AsBool() ||
		value(e, semconv.HwStateKey).AsString() != "ok" ||
		value(e, semconv.EventBeganKey).AsString() != start.UTC().Format(time.RFC3339Nano) {
		t.Errorf("GPU that returned: got %+v, want it resolved and ok", e)
	}
	e = emit.Happened(over(alert.GPUError))
	if e.Name != semconv.GPUErrorEvent.Name || e.Severity != emit.Info ||
		value(e, semconv.ErrorTypeKey).AsString() != "xid_79" ||
		value(e, semconv.EventCountKey).AsInt64() != 3 || !value(e, semconv.EventResolvedKey).AsBool() {
		t.Errorf("end of XID 79: got %+v, want it resolved with a count of 3", e)
	}
	e = emit.Happened(over(alert.IOStorm))
	if e.Name != semconv.IOStormEvent.Name || e.Severity != emit.Info || e.Was != emit.Warn ||
		value(e, semconv.SystemDeviceNameKey).AsString() != "sda" ||
		value(e, semconv.IOStormWindowsKey).AsInt64() != 2 ||
		value(e, semconv.EventBeganKey).AsString() != start.UTC().Format(time.RFC3339Nano) {
		t.Errorf("end of a storm: got %+v, want it resolved with 2 windows on sda", e)
	}
	drive := alert.Event{Kind: alert.DiskFailing, Drive: &sample.Drive{Device: "sda", Status: sample.DriveFailing},
		Disk: "sda", Severe: true}
	if e := emit.Happened(drive); value(e, semconv.HwStateKey).AsString() != "predicted_failure" ||
		value(e, semconv.HwIDKey).AsString() != "sda" {
		t.Errorf("failing drive: got %+v, want predicted_failure of sda", e)
	}
}

func TestTestEvents(t *testing.T) {
	for _, name := range emit.EventNames() {
		e, err := emit.NewTestEvent(name, start)
		if err != nil || e.Name != name || e.Severity == emit.Info ||
			!strings.HasPrefix(e.Body, "a test, nothing has happened: ") || len(e.Attributes) < 2 {
			t.Errorf("%s: got %+v, %v, want a warning or an error with attributes", name, e, err)
		}
	}
	if _, err := emit.NewTestEvent("stallspan.gpu.los", start); err == nil ||
		!strings.Contains(err.Error(), "stallspan.gpu.lost, ") {
		t.Errorf("unknown event: got %v, want the list of names", err)
	}
}
