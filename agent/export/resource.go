package export

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/stallspan/stallspan/internal/host"
	"github.com/stallspan/stallspan/semconv"
)

// serviceName is ours unless OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES say otherwise.
const serviceName = "stallspan"

// describe makes the resource of both signals: who sends, and from which machine. What the environment says wins.
func describe(ctx context.Context, root string) (*resource.Resource, error) {
	if err := checkResource(); err != nil {
		return nil, err
	}
	attrs := []attribute.KeyValue{
		semconv.ServiceNameKey.String(serviceName),
		semconv.ServiceInstanceIDKey.String(randomUUID()),
	}
	if id := host.ID(root); id != "" {
		attrs = append(attrs, semconv.HostIDKey.String(id))
	}
	if name := host.Name(root); name != "" {
		attrs = append(attrs, semconv.HostNameKey.String(name))
	}
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithAttributes(attrs...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("the resource cannot be described: %w", err)
	}
	return res, nil
}

// ofProcess adds to the resource what spans alone say: the process that made them.
func ofProcess(res *resource.Resource) *resource.Resource {
	all := append([]attribute.KeyValue{semconv.ProcessPIDKey.Int(os.Getpid())}, res.Attributes()...)
	return resource.NewWithAttributes(res.SchemaURL(), all...)
}

// randomUUID is a UUID of version 4 (RFC 9562).
func randomUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, says its package
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func checkResource() error {
	const variable = "OTEL_RESOURCE_ATTRIBUTES"
	value := lookup(variable)
	if value == "" {
		return nil
	}
	for pair := range strings.SplitSeq(value, ",") {
		_, text, found := strings.Cut(pair, "=")
		if _, err := url.PathUnescape(text); err != nil || !found {
			return fmt.Errorf("%s: %.60q is not of the form key=value, with %%2C for a comma", variable, pair)
		}
	}
	return nil
}
