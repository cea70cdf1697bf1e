package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// client is an HTTP client of our own: the exporters' is shared by the whole process and keeps its connections open
// after they are shut down.
func (r *route) client() (*http.Client, func()) {
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     r.tls,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        2,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
	}
	return &http.Client{Transport: sorter{transport}, Timeout: r.timeout}, transport.CloseIdleConnections
}

// sorter turns every answer but success into an error of ours, while its status is still at hand.
type sorter struct{ next http.RoundTripper }

// maxExplanation bounds what is kept of a body that explains an error, in bytes.
const maxExplanation = 512

// RoundTrip implements http.RoundTripper.
func (s sorter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	switch {
	case response.StatusCode < 300:
		if taken, ok := request.Context().Value(takenKey{}).(*bool); ok {
			*taken = true
		}
		return response, nil
	case response.StatusCode < 400:
		return response, nil // the client follows it
	}
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxExplanation)) // without it the status has to do
	_ = response.Body.Close()
	return nil, httpAnswer(response, explanation(body))
}

// explanation is a body as one line of text; that of a protobuf answer is its status message among a few other bytes.
func explanation(body []byte) string {
	readable := strings.Map(func(r rune) rune {
		if r < ' ' || r == '\u007f' || r == '\ufffd' {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(body), " "))
	return strings.Join(strings.Fields(readable), " ")
}

func (r *route) httpSpans(ctx context.Context) (sdktrace.SpanExporter, func(), error) {
	client, hangUp := r.client()
	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: false}),
		otlptracehttp.WithHTTPClient(client))
	if err != nil {
		return nil, nil, fmt.Errorf("spans cannot leave over HTTP: %w", err)
	}
	return httpSpanExporter{exporter}, hangUp, nil
}

// takenKey leads to the bool of one export that says whether a backend answered it with success.
type takenKey struct{}

// httpSpanExporter never has a batch sent again that was answered with success.
type httpSpanExporter struct{ *otlptrace.Exporter }

func (e httpSpanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return once(ctx, func(ctx context.Context) error { return e.Exporter.ExportSpans(ctx, spans) })
}

// once calls export, and gives a refusal for an error behind an answer of success.
func once(ctx context.Context, export func(context.Context) error) error {
	var taken bool
	err := export(context.WithValue(ctx, takenKey{}, &taken))
	var known *refusal
	if err == nil || !taken || errors.As(err, &known) {
		return err
	}
	refused, _ := partial(err) // anything else is an answer that cannot be read
	return &refusal{refused, err}
}

func (r *route) httpMetrics(ctx context.Context) (sdkmetric.Exporter, func(), error) {
	client, hangUp := r.client()
	exporter, err := otlpmetrichttp.New(ctx,
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: false}),
		otlpmetrichttp.WithHTTPClient(client))
	if err != nil {
		return nil, nil, fmt.Errorf("metrics cannot leave over HTTP: %w", err)
	}
	return exporter, hangUp, nil
}

func (r *route) httpLogs(ctx context.Context) (sdklog.Exporter, func(), error) {
	client, hangUp := r.client()
	exporter, err := otlploghttp.New(ctx,
		otlploghttp.WithRetry(otlploghttp.RetryConfig{Enabled: false}),
		otlploghttp.WithHTTPClient(client))
	if err != nil {
		return nil, nil, fmt.Errorf("log records cannot leave over HTTP: %w", err)
	}
	return httpLogExporter{exporter}, hangUp, nil
}

// httpLogExporter never has a batch sent again that was answered with success.
type httpLogExporter struct{ *otlploghttp.Exporter }

func (e httpLogExporter) Export(ctx context.Context, records []sdklog.Record) error {
	return once(ctx, func(ctx context.Context) error { return e.Exporter.Export(ctx, records) })
}
