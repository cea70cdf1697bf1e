package export

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// reconnect bounds gRPC's pauses between two attempts to connect. By default they grow to two minutes, in which every
// export fails at once: a Close of a few seconds would not find a backend that has returned.
var reconnect = grpc.WithConnectParams(grpc.ConnectParams{
	Backoff: backoff.Config{
		BaseDelay: 500 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second,
	},
	MinConnectTimeout: 20 * time.Second,
})

// waitForReady makes an export wait for a connection, within its timeout, instead of failing during such a pause. It is
// for metrics, whose last export is not repeated.
var waitForReady = grpc.WithDefaultCallOptions(grpc.WaitForReady(true))

func newGRPCSpanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	exporter, err := otlptracegrpc.New(ctx,
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: false}),
		otlptracegrpc.WithDialOption(reconnect))
	if err != nil {
		return nil, err
	}
	return grpcSpanExporter{exporter}, nil
}

type grpcSpanExporter struct{ *otlptrace.Exporter }

func (e grpcSpanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return classifyGRPC(e.Exporter.ExportSpans(ctx, spans))
}

func newGRPCMetricExporter(ctx context.Context) (sdkmetric.Exporter, error) {
	return otlpmetricgrpc.New(ctx,
		otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{Enabled: false}),
		otlpmetricgrpc.WithDialOption(reconnect, waitForReady))
}

func newGRPCLogExporter(ctx context.Context) (sdklog.Exporter, error) {
	exporter, err := otlploggrpc.New(ctx,
		otlploggrpc.WithRetry(otlploggrpc.RetryConfig{Enabled: false}),
		otlploggrpc.WithDialOption(reconnect))
	if err != nil {
		return nil, err
	}
	return grpcLogExporter{exporter}, nil
}

type grpcLogExporter struct{ *otlploggrpc.Exporter }

func (e grpcLogExporter) Export(ctx context.Context, records []sdklog.Record) error {
	return classifyGRPC(e.Exporter.Export(ctx, records))
}
