package export

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
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

// sender calls an export of the SDK. Its error shows whether a retry can help.
type sender func(ctx context.Context, export func(context.Context) error) error

func sendGRPC(ctx context.Context, export func(context.Context) error) error {
	return classifyGRPC(export(ctx))
}

type spanExporter struct {
	sdktrace.SpanExporter
	send sender
}

func (e spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return e.send(ctx, func(ctx context.Context) error { return e.SpanExporter.ExportSpans(ctx, spans) })
}

type logExporter struct {
	sdklog.Exporter
	send sender
}

func (e logExporter) Export(ctx context.Context, records []sdklog.Record) error {
	return e.send(ctx, func(ctx context.Context) error { return e.Exporter.Export(ctx, records) })
}

// client returns the client of a signal over HTTP, or nil for gRPC.
func (e *Exporter) client(s signal) (*http.Client, error) {
	protocol, err := s.protocol()
	if err != nil || protocol == protocolGRPC {
		return nil, err
	}
	client, err := s.httpClient()
	if err == nil {
		e.closeIdle = append(e.closeIdle, client.CloseIdleConnections)
	}
	return client, err
}

func (e *Exporter) newSpanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	client, err := e.client(traces)
	switch {
	case err != nil:
		return nil, err
	case client != nil:
		exporter, err := otlptracehttp.New(ctx,
			otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: false}), otlptracehttp.WithHTTPClient(client))
		return spanExporter{exporter, sendHTTP}, err
	}
	exporter, err := otlptracegrpc.New(ctx,
		otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{Enabled: false}), otlptracegrpc.WithDialOption(reconnect))
	return spanExporter{exporter, sendGRPC}, err
}

func (e *Exporter) newLogExporter(ctx context.Context) (sdklog.Exporter, error) {
	client, err := e.client(logs)
	switch {
	case err != nil:
		return nil, err
	case client != nil:
		exporter, err := otlploghttp.New(ctx,
			otlploghttp.WithRetry(otlploghttp.RetryConfig{Enabled: false}), otlploghttp.WithHTTPClient(client))
		return logExporter{exporter, sendHTTP}, err
	}
	exporter, err := otlploggrpc.New(ctx,
		otlploggrpc.WithRetry(otlploggrpc.RetryConfig{Enabled: false}), otlploggrpc.WithDialOption(reconnect))
	return logExporter{exporter, sendGRPC}, err
}

func (e *Exporter) newMetricExporter(ctx context.Context) (sdkmetric.Exporter, error) {
	client, err := e.client(metrics)
	switch {
	case err != nil:
		return nil, err
	case client != nil:
		return otlpmetrichttp.New(ctx,
			otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: false}), otlpmetrichttp.WithHTTPClient(client))
	}
	return otlpmetricgrpc.New(ctx,
		otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{Enabled: false}),
		otlpmetricgrpc.WithDialOption(reconnect, waitForReady))
}
