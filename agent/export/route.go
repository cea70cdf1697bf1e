package export

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// The two ways to speak OTLP, as OTEL_EXPORTER_OTLP_PROTOCOL calls them.
const (
	protocolGRPC = "grpc" // our default
	protocolHTTP = "http/protobuf"
)

// defaultTimeout is for how long one export may take, as OpenTelemetry has it.
const defaultTimeout = 10 * time.Second

// route is how a signal leaves. Endpoint, headers and compression are not in it: the exporters read those themselves.
type route struct {
	protocol string
	tls      *tls.Config   // nil for the system's certificates
	timeout  time.Duration // of one export; 0 for none
}

// routeOf checks the environment of a signal; nil when the signal does not leave.
func routeOf(s signal) (*route, error) {
	wanted, err := s.wanted()
	if err != nil || !wanted {
		return nil, err
	}
	r := &route{protocol: protocolGRPC, timeout: defaultTimeout}
	if value, variable := s.setting("PROTOCOL"); value != "" {
		if r.protocol = strings.ToLower(value); r.protocol != protocolGRPC && r.protocol != protocolHTTP {
			return nil, fmt.Errorf("%s is %.40q: %s and %s are possible", variable, value, protocolGRPC, protocolHTTP)
		}
	}
	if err := s.each("ENDPOINT", checkEndpoint(r.protocol)); err != nil {
		return nil, err
	}
	if err := s.each("HEADERS", checkHeaders); err != nil {
		return nil, err
	}
	if err := s.each("COMPRESSION", checkCompression); err != nil {
		return nil, err
	}
	err = s.each("TIMEOUT", func(variable, value string) (err error) {
		r.timeout, err = milliseconds(variable, value, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	if r.tls, err = s.certificates(); err != nil {
		return nil, err
	}
	if value, variable := s.setting("ENDPOINT"); r.tls != nil && strings.HasPrefix(strings.ToLower(value), "http:") {
		return nil, fmt.Errorf("%s begins with http:, which uses no TLS, and a certificate is set for it: write https: or unset OTEL_EXPORTER_OTLP_*CERTIFICATE",
			variable)
	}
	return r, nil
}

// spanExporter tries each batch once: the queue does the retrying. hangUp drops its idle connections, after Shutdown.
func (r *route) spanExporter(ctx context.Context) (exporter sdktrace.SpanExporter, hangUp func(), err error) {
	if r.protocol == protocolHTTP {
		return r.httpSpans(ctx)
	}
	exporter, err = grpcSpans(ctx)
	return exporter, func() {}, err
}

// metricExporter tries each collection once: the next one holds all that it held.
func (r *route) metricExporter(ctx context.Context) (exporter sdkmetric.Exporter, hangUp func(), err error) {
	if r.protocol == protocolHTTP {
		return r.httpMetrics(ctx)
	}
	exporter, err = grpcMetrics(ctx)
	return exporter, func() {}, err
}

// logExporter tries each batch once, as spanExporter does.
func (r *route) logExporter(ctx context.Context) (exporter sdklog.Exporter, hangUp func(), err error) {
	if r.protocol == protocolHTTP {
		return r.httpLogs(ctx)
	}
	exporter, err = grpcLogs(ctx)
	return exporter, func() {}, err
}
