package export

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/stallspan/stallspan/internal/emit"
)

// describe makes the resource of both signals: who sends, and from which machine. What the environment says wins.
func describe(ctx context.Context, root string) (*resource.Resource, error) {
	if err := checkResource(); err != nil {
		return nil, err
	}
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithAttributes(emit.Resource(root)...), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("the resource cannot be described: %w", err)
	}
	return res, nil
}

// ofProcess adds to the resource what spans alone say: the process that made them.
func ofProcess(res *resource.Resource) *resource.Resource {
	all := append([]attribute.KeyValue{emit.OwnProcess()}, res.Attributes()...)
	return resource.NewWithAttributes(res.SchemaURL(), all...)
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
