//go:build linux && (amd64 || arm64)

package receiver

import (
	"errors"
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/receiver/internal/metadatatest"
)

// Windows that are open when the Collector stops become unfinished spans, whichever pipeline is shut down first.
func TestShutdownWithOpenWindows(t *testing.T) {
	for _, kinds := range [][]string{{"metrics", "traces", "logs"}, {"traces", "logs", "metrics"}} {
		c := laboratory(t)
		p := in(t, NewFactory(), settings(), c, kinds...)
		p.start(t)
		for range 50 {
			begin(t, c, api.Announcement{Kind: window.ModelLoad, Model: "llama"})
		}
		if err := p.parts[0].Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := p.SpanCount(); n != 50 {
			t.Errorf("%d spans of 50 windows when the first pipeline was shut down", n)
		}
		p.parts = p.parts[1:]
		p.stop(t)
		for _, span := range p.spans() {
			if value(span.Attributes(), "stallspan.window.unfinished") != "true" {
				t.Fatalf("span: got %v, want it unfinished", attributes(span.Attributes()))
			}
		}
		if _, err := os.Stat(c.Socket); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
	}
}

// A Collector that loads its config again makes new receivers, of new configs or of the same ones.
func TestRestart(t *testing.T) {
	f, c := NewFactory(), laboratory(t)
	for range 3 {
		p := in(t, f, settings(), c, "metrics", "traces", "logs")
		p.start(t)
		end(t, c, begin(t, c, api.Announcement{Kind: window.Epoch}).ID)
		p.stop(t)
		if p.SpanCount() != 1 {
			t.Errorf("%d spans", p.SpanCount())
		}
	}
	in(t, f, settings(), c, "metrics", "traces", "logs").stop(t) // never started
}

func TestOnePerConfig(t *testing.T) {
	f, c := NewFactory(), laboratory(t)
	p := in(t, f, settings(), c, "traces", "logs")
	defer p.stop(t)
	if p.parts[0] != p.parts[1] {
		t.Error("two receivers of one config")
	}
	if _, err := f.CreateTraces(t.Context(), settings(), &struct{}{}, nil); err == nil {
		t.Error("a config of another kind")
	}
}

func TestRefusedAtStart(t *testing.T) {
	f, c := NewFactory(), laboratory(t)
	in(t, f, settings(), c, "traces").start(t)
	refused := func(other *Config, kind, says string) error {
		t.Helper()
		p := in(t, f, settings(), other, kind)
		err := p.parts[0].Start(t.Context(), componenttest.NewNopHost())
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
		p.stop(t)
		return err
	}
	taken := *c
	_ = refused(&taken, "logs", "another stallspan serves "+c.Socket)
	other := *laboratory(t)
	if err := refused(&other, "metrics", "the settings differ"); !errors.Is(err, monitor.ErrDiffer) {
		t.Error(err)
	}
	long := *c
	long.Socket = "/" + strings.Repeat("x", 200)
	_ = refused(&long, "traces", "the limit is 107")
	neighbor := *c
	neighbor.Socket += "2"
	in(t, f, settings(), &neighbor, "traces").start(t) // the same settings, another socket
}

func TestNothingToWatch(t *testing.T) {
	c := laboratory(t)
	c.Sampling.RootPath = t.TempDir()
	p := in(t, NewFactory(), settings(), c, "traces")
	err := p.parts[0].Start(t.Context(), componenttest.NewNopHost())
	if err == nil || !strings.Contains(err.Error(), "check sampling::root_path") {
		t.Error(err)
	}
	if _, err := os.Stat(c.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	p.stop(t)
}

func TestTelemetry(t *testing.T) {
	tel := componenttest.NewTelemetry()
	c := laboratory(t)
	set := metadatatest.NewSettings(tel)
	p := in(t, NewFactory(), set, c, "traces")
	p.start(t)
	begin(t, c, api.Announcement{Kind: window.Epoch})
	points := func(v int64) []metricdata.DataPoint[int64] {
		return []metricdata.DataPoint[int64]{{Value: v, Attributes: attribute.NewSet(attribute.String("receiver",
			set.ID.String()))}}
	}
	metadatatest.AssertEqualReceiverStallspanWindowsOpen(t, tel, points(1), metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualReceiverStallspanExportDropped(t, tel, points(0), metricdatatest.IgnoreTimestamp())
	before := int64(sample.Panics())
	_ = sample.Protect(func() { panic("for the test") })
	metadatatest.AssertEqualReceiverStallspanPanics(t, tel, points(before+1), metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualReceiverStallspanReadingsLate(t, tel, points(0), metricdatatest.IgnoreTimestamp(),
		metricdatatest.IgnoreValue())
	p.stop(t)
	if _, err := tel.GetMetric("otelcol_receiver_stallspan_windows_open"); err == nil {
		t.Error("windows_open after the shutdown: got a metric, want none")
	}
	if m, err := tel.GetMetric("otelcol_receiver_accepted_spans"); err != nil {
		t.Error(err)
	} else if sum, ok := m.Data.(metricdata.Sum[int64]); !ok || sum.DataPoints[0].Value != 1 {
		t.Errorf("accepted spans: got %+v, want 1", m)
	}
	_ = tel.Shutdown(t.Context())
}
