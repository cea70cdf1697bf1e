package emit_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/semconv"
)

// reportedBody is a slow epoch as run reports it, with claims that no client may make.
const reportedBody = `{"id":"mine","name":"stallspan.window.slow","severity":"ERROR","time":"2026-03-01T12:00:00Z",
	"resolved":true,"test":true,"body":"epoch\u001b[31m a","trace_id":"0af7651916cd43dd8448eb211c80319c",
	"span_id":"b7ad6b7169203331","attributes":{"stallspan.window.kind":"epoch","stallspan.slowness.reason":"storage",
	"stallspan.training.epoch.index":3,"stallspan.event.reporter":"uid 0","stallspan.event.test":true,
	"hw.id":"GPU-1"}}`

func parse(t *testing.T, text string) *emit.EventJSON {
	t.Helper()
	var j emit.EventJSON
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		t.Fatal(err)
	}
	return &j
}

func TestReported(t *testing.T) {
	now := start.Add(time.Minute)
	e, span, err := emit.Reported(parse(t, reportedBody), "uid 1000", now)
	if err != nil {
		t.Fatal(err)
	}
	got := attribute.NewSet(e.Attributes...)
	want := attribute.NewSet(semconv.WindowKindKey.String("epoch"), semconv.SlownessReasonKey.String("storage"),
		semconv.TrainingEpochIndexKey.Int(3), semconv.EventReporterKey.String("uid 1000"))
	if !got.Equals(&want) {
		t.Errorf("attributes: got %v, want %v", got.Encoded(attribute.DefaultEncoder()),
			want.Encoded(attribute.DefaultEncoder()))
	}
	if e.ID != "" || e.Client != "uid 1000" || e.Severity != emit.Warn || e.Test() || e.Resolved() ||
		e.Body != "epoch [31m a" || !e.Time.Equal(start) ||
		span.SpanID().String() != "b7ad6b7169203331" {
		t.Errorf("got %+v in span %v, want a warning of %v in the span of the report", e, span.SpanID(), start)
	}
	for _, at := range []time.Time{start.Add(-time.Second), start.Add(8 * 24 * time.Hour)} {
		if e, _, err := emit.Reported(parse(t, reportedBody), "uid 1000", at); err != nil || !e.Time.Equal(at) {
			t.Errorf("reported at %v: got %v, %v, want that moment", at, e.Time, err)
		}
	}
}

func TestReportedRefused(t *testing.T) {
	for change, want := range map[string]string{
		`"stallspan.window.slow"`:                 "only stallspan.window.slow can",
		`"stallspan.slowness.reason":"storage",`:  "stallspan.slowness.reason is missing",
		`"epoch",`:                                "is not a kind of window",
		`"stallspan.training.epoch.index":3,`:     "",
		`"stallspan.training.epoch.index":3,"sta`: "stallspan.training.epoch.index has the wrong type",
	} {
		replacement := map[string]string{
			`"stallspan.window.slow"`: `"stallspan.gpu.lost"`, `"epoch",`: `"epohc",`,
			`"stallspan.training.epoch.index":3,"sta`: `"stallspan.training.epoch.index":3.5,"sta`,
		}[change]
		body := strings.Replace(reportedBody, change, replacement, 1)
		_, _, err := emit.Reported(parse(t, body), "uid 1000", start)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("without %s: got %v, want %q", change, err, want)
		}
	}
}

// Whatever a program reports, the reporter is who the kernel says, and nothing is registered elsewhere.
func FuzzReported(f *testing.F) {
	f.Add([]byte(reportedBody))
	f.Add([]byte(`{"name":"stallspan.window.slow","attributes":{"stallspan.window.kind":1}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var j emit.EventJSON
		if json.Unmarshal(body, &j) != nil {
			return
		}
		e, _, err := emit.Reported(&j, "uid 1000", start)
		if err != nil {
			return
		}
		o := newOracle()
		o.event(e)
		set := attribute.NewSet(e.Attributes...)
		who, _ := set.Value(semconv.EventReporterKey)
		if problems := o.sorted(); len(problems) > 0 || who.AsString() != "uid 1000" || e.Test() {
			t.Errorf("got %+v with %q, want the registered attributes and uid 1000", e, problems)
		}
	})
}
