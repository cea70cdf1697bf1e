//go:build !linux || !(amd64 || arm64)

package receiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/stallspan/stallspan/receiver/internal/metadata"
)

var errLinux = errors.New("the receiver stallspan needs Linux on amd64 or arm64")

// Config takes any keys, so that the error is the one above.
type Config struct{}

// Unmarshal implements confmap.Unmarshaler.
func (*Config) Unmarshal(*confmap.Conf) error { return nil }

func createDefaultConfig() component.Config { return &Config{} }

// NewFactory returns the factory of a receiver that cannot be created.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(metadata.Type, createDefaultConfig,
		receiver.WithMetrics(func(
			context.Context, receiver.Settings, component.Config, consumer.Metrics,
		) (receiver.Metrics, error) {
			return nil, errLinux
		}, metadata.MetricsStability),
		receiver.WithTraces(func(
			context.Context, receiver.Settings, component.Config, consumer.Traces,
		) (receiver.Traces, error) {
			return nil, errLinux
		}, metadata.TracesStability),
		receiver.WithLogs(func(
			context.Context, receiver.Settings, component.Config, consumer.Logs,
		) (receiver.Logs, error) {
			return nil, errLinux
		}, metadata.LogsStability))
}
