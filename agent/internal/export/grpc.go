package export

import (
	"context"
	"fmt"
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

// reconnection keeps gRPC's own pauses between two attempts to connect short. By default they grow to two minutes, in
// which every export fails at once, so that a backend that is back would be missed by a Close of a few seconds.
var reconnection = grpc.WithConnectParams(grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 500 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
	MinConnectTimeout: 20 * time.Second,
})

// patient lets an export wait for a connection, within its timeout, rather than fail in a pause between two attempts:
// nobody repeats the export of metrics at the end.
var patient = grpc.WithDefaultCallOptions(grpc.WaitForReady(true))

func grpcSpans(ctx context.Context) (sdktrace.SpanExporter, error) {
	exporter, err := otlptracegrpc.New(ctx,
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: false}),
		otlptracegrpc.WithDialOption(reconnection))
	if err != nil {
		return nil, fmt.Errorf("spans cannot leave over gRPC: %w", err)
	}
	return grpcSpanExporter{exporter}, nil
}

// grpcSpanExporter sorts the answers.
type grpcSpanExporter struct{ *otlptrace.Exporter }

func (e grpcSpanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return grpcAnswer(e.Exporter.ExportSpans(ctx, spans))
}

func grpcMetrics(ctx context.Context) (sdkmetric.Exporter, error) {
	exporter, err := otlpmetricgrpc.New(ctx,
		otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{Enabled: false}),
		otlpmetricgrpc.WithDialOption(reconnection, patient))
	if err != nil {
		return nil, fmt.Errorf("metrics cannot leave over gRPC: %w", err)
	}
	return exporter, nil
}

func grpcLogs(ctx context.Context) (sdklog.Exporter, error) {
	exporter, err := otlploggrpc.New(ctx,
		otlploggrpc.WithRetry(otlploggrpc.RetryConfig{Enabled: false}),
		otlploggrpc.WithDialOption(reconnection))
	if err != nil {
		return nil, fmt.Errorf("log records cannot leave over gRPC: %w", err)
	}
	return grpcLogExporter{exporter}, nil
}

// grpcLogExporter sorts the answers.
type grpcLogExporter struct{ *otlploggrpc.Exporter }

func (e grpcLogExporter) Export(ctx context.Context, records []sdklog.Record) error {
	return grpcAnswer(e.Exporter.Export(ctx, records))
}
