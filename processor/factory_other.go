//go:build !linux || !(amd64 || arm64)

package processor

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"

	"github.com/stallspan/stallspan/processor/internal/metadata"
)

var errLinux = errors.New("the processor stallspan needs Linux on amd64 or arm64")

// Config takes any keys, so that the error is the one above.
type Config struct{}

// Unmarshal implements confmap.Unmarshaler.
func (*Config) Unmarshal(*confmap.Conf) error { return nil }

func createDefaultConfig() component.Config { return &Config{} }

// NewFactory returns the factory of a processor that cannot be created.
func NewFactory() processor.Factory {
	return processor.NewFactory(metadata.Type, createDefaultConfig,
		processor.WithTraces(func(
			context.Context, processor.Settings, component.Config, consumer.Traces,
		) (processor.Traces, error) {
			return nil, errLinux
		}, metadata.TracesStability))
}
