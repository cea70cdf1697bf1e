package collector

import (
	"context"
	"os"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// tracer returns a tracer that sends each span to address when it ends. who are resource attributes.
func tracer(t *testing.T, address string, who ...attribute.KeyValue) trace.Tracer {
	t.Helper()
	exporter, err := otlptracegrpc.New(context.Background(),
		otlptracegrpc.WithEndpoint(address), otlptracegrpc.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	who = append(who, attribute.String("service.name", "a-service"))
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter),
		sdktrace.WithResource(resource.NewSchemaless(who...)))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return provider.Tracer("a-library")
}

// here returns the resource attributes of a program on this machine.
func here(t *testing.T) []attribute.KeyValue {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return []attribute.KeyValue{attribute.String("host.name", name), attribute.Int("process.pid", os.Getpid())}
}
