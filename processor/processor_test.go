//go:build linux && (amd64 || arm64)

package processor

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/processor/internal/metadata"
	"github.com/stallspan/stallspan/processor/internal/metadatatest"
)

// The whole processor, on the machine that the test runs on.
func TestProcessor(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	defer func() { _ = telemetry.Shutdown(context.Background()) }()
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	c := createDefaultConfig().(*Config)
	c.Sampling = &config.Sampling{Interval: 20 * time.Millisecond}
	var next consumertest.TracesSink
	p, err := NewFactory().CreateTraces(context.Background(), set, c, &next)
	if err != nil {
		t.Fatal(err)
	}
	if !p.Capabilities().MutatesData {
		t.Error("capabilities: got no mutation of data, want it")
	}
	if err := p.Start(context.Background(), componenttest.NewNopHost()); err != nil {
		t.Skipf("nothing of this machine can be read: %v", err)
	}
	defer func() {
		if err := p.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no span was annotated in 20 s")
		}
		traces, to := batch()
		now := time.Now()
		span := put(to, "model.load", now.Add(-200*time.Millisecond), now, nil) // it ends as it arrives
		put(to, "model.load", now, now.Add(-time.Second), nil)
		traces.ResourceSpans().At(0).Resource().Attributes().PutBool("process.pid", true)
		if err := p.ConsumeTraces(context.Background(), traces); err != nil {
			t.Fatal(err)
		}
		if _, ok := span.Attributes().Get("stallspan.verdict"); ok {
			break
		}
	}
	batches := len(next.AllTraces())
	if next.SpanCount() < 2*batches {
		t.Errorf("%d spans of %d batches", next.SpanCount(), batches)
	}
	ignoring, id := metricdatatest.IgnoreTimestamp(), attribute.String("processor", set.ID.String())
	metadatatest.AssertEqualProcessorStallspanSpansAnnotated(t, telemetry, []metricdata.DataPoint[int64]{{
		Value: 1, Attributes: attribute.NewSet(id),
	}}, ignoring)
	metadatatest.AssertEqualProcessorStallspanAttributesIgnored(t, telemetry, []metricdata.DataPoint[int64]{{
		Value: int64(batches), Attributes: attribute.NewSet(attribute.String("attribute", "process.pid"), id),
	}}, ignoring)
	skipped, err := telemetry.GetMetric("otelcol_processor_stallspan_spans_skipped")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, point := range skipped.Data.(metricdata.Sum[int64]).DataPoints {
		reason, _ := point.Attributes.Value("reason")
		got[reason.AsString()] = point.Value
	}
	if got["backward"] != int64(batches) || got["old"] != int64(batches)-1 {
		t.Errorf("skipped %v of %d batches", got, batches)
	}
}

// Two with different settings are refused; one without takes the other's.
func TestShared(t *testing.T) {
	create := func(c *config.Sampling) *stallspanProcessor {
		config := createDefaultConfig().(*Config)
		config.Sampling = c
		s, err := newProcessor(config, processortest.NewNopSettings(metadata.Type))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.shutdown(context.Background()) })
		return s
	}
	joins, one := create(nil), create(&config.Sampling{Interval: 50 * time.Millisecond})
	for _, s := range []*stallspanProcessor{joins, one} {
		if err := s.start(context.Background(), nil); err != nil {
			t.Skipf("nothing of this machine can be read: %v", err)
		}
	}
	if joins.annotator.monitor != one.annotator.monitor || one.annotator.monitor.Interval() != 50*time.Millisecond {
		t.Error("they do not share a monitor")
	}
	other := create(&config.Sampling{Interval: 60 * time.Millisecond})
	if err := other.start(context.Background(), nil); err == nil {
		t.Error("two different settings were taken")
	}
}
