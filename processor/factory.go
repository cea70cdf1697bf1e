//go:build linux && (amd64 || arm64)

package processor

import (
	"context"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/stallspan/stallspan/processor/internal/metadata"
)

// NewFactory returns the factory of the processor "stallspan".
func NewFactory() processor.Factory {
	return processor.NewFactory(metadata.Type, createDefaultConfig,
		processor.WithTraces(createTraces, metadata.TracesStability))
}

func createTraces(
	ctx context.Context, set processor.Settings, config component.Config, next consumer.Traces,
) (processor.Traces, error) {
	c, ok := config.(*Config)
	if !ok {
		return nil, fmt.Errorf("the config is a %T, want a %T", config, c)
	}
	p, err := newProcessor(c, set)
	if err != nil {
		return nil, err
	}
	return processorhelper.NewTraces(ctx, set, config, next, p.process,
		processorhelper.WithStart(p.start),
		processorhelper.WithShutdown(p.shutdown),
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}))
}
