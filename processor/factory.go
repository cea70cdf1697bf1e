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

// NewFactory makes the factory of the processor "stallspan".
func NewFactory() processor.Factory {
	return processor.NewFactory(metadata.Type, createDefaultConfig, processor.WithTraces(createTraces, metadata.TracesStability))
}

func createTraces(
	ctx context.Context, set processor.Settings, config component.Config, next consumer.Traces,
) (processor.Traces, error) {
	c, ok := config.(*Config)
	if !ok {
		return nil, fmt.Errorf("%T is no config of this processor", config)
	}
	s, err := newSpans(c, set)
	if err != nil {
		return nil, err
	}
	return processorhelper.NewTraces(ctx, set, config, next, s.process,
		processorhelper.WithStart(s.start),
		processorhelper.WithShutdown(s.shutdown),
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}))
}
