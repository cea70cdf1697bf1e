package export

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/stallspan/stallspan/internal/emit"
)

// Resource describes this program and its machine. root is the folder that is the host's "/". Attributes of the
// environment win.
func Resource(ctx context.Context, root string) (*resource.Resource, error) {
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithAttributes(emit.Resource(root)...), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) { // the SDK reports a partial one by itself
		return nil, err
	}
	return res, nil
}

// withProcess adds the attributes of this process, which only spans have.
func withProcess(res *resource.Resource) *resource.Resource {
	all := append([]attribute.KeyValue{emit.OwnProcess()}, res.Attributes()...)
	return resource.NewWithAttributes(res.SchemaURL(), all...)
}
