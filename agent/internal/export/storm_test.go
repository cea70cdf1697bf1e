package export

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// The I/O storm of two slow loads is one event, on the span of the load that ended last.
func TestStormLeaves(t *testing.T) {
	var b backend
	b.serve(t, "", nil)
	environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + b.address})
	e, err := New(t.Context(), Options{Version: "1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Date(2026, 11, 3, 10, 0, 0, 0, time.UTC)
	for i, model := range []string{"one", "two"} {
		r := &window.Report{Judgement: window.Judgement{Slow: true, SlowReason: window.SlowStorage, Verdict: window.StorageBound}}
		r.Kind, r.Model = window.ModelLoad, model
		r.Start, r.End = sample.Stamp{Mono: time.Hour, Wall: start}, sample.Stamp{Mono: time.Hour + time.Minute}
		for range i {
			r.Storms = append(r.Storms, window.Storm{Disk: "sda", Windows: 2, Since: time.Hour + time.Second})
		}
		span := emit.WindowSpan(r, config.Spans{})
		e.Begin(span.Name, start, trace.SpanContext{}).End(span)
	}
	e.Close(within(t, patience))
	found := b.all()
	if len(found["load one"]) != 1 || len(found["load two"]) != 1 {
		t.Fatalf("spans: got %v, want one of each load", found)
	}
	storms := 0
	for _, name := range []string{"load one", "load two"} {
		for _, event := range found[name][0].GetEvents() {
			if event.GetName() != semconv.IOStormEvent.Name {
				continue
			}
			storms++
			got := values(event.GetAttributes())
			if name != "load two" || event.GetTimeUnixNano() != uint64(start.Add(time.Second).UnixNano()) ||
				got["system.device.name"] != "sda" {
				t.Errorf("event of %s: got %v, want one of sda on load two, at its start", name, event)
			}
		}
	}
	if storms != 1 {
		t.Errorf("%d storms", storms)
	}
}
