package emit

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

func TestEventJSON(t *testing.T) {
	e, err := NewTestEvent("stallspan.gpu.temperature.high", time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	e.ID, e.Span = "one", trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}})
	const want = `{"id":"one","name":"stallspan.gpu.temperature.high","severity":"WARN",` +
		`"time":"2026-03-01T12:00:00Z","resolved":false,"test":true,` +
		`"body":"a test, nothing has happened: a GPU is at 90 C",` +
		`"trace_id":"01000000000000000000000000000000","span_id":"0200000000000000",` +
		`"attributes":{"hw.driver_version":"test","hw.id":"test","hw.name":"test","hw.sensor_location":"gpu",` +
		`"stallspan.event.limit":85,"stallspan.event.test":true,"stallspan.event.value":90}}` + "\n"
	if got := string(e.JSON()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Any event is one line of JSON of bounded length.
func FuzzEventJSON(f *testing.F) {
	f.Add("sda\n{}", "\xff\x00", 1.5)
	f.Add(strings.Repeat("x", 5000), "k", math.NaN())
	f.Fuzz(func(t *testing.T, name, text string, number float64) {
		e := Event{Name: name, Body: text, Attributes: []attribute.KeyValue{
			attribute.String(text, name), attribute.Float64("number", number),
			attribute.StringSlice("list", []string{name, text}),
		}}
		line := string(e.JSON())
		if strings.Count(line, "\n") != 1 || !json.Valid([]byte(line)) || len(line) > 64<<10 {
			t.Errorf("got %d bytes, want one line of at most 64 KiB of JSON: %.200q", len(line), line)
		}
	})
}
