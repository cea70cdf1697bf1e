package processor

import (
	"context"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/locate"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/processor/internal/metadata"
)

// spans is the processor, from its creation to its shutdown.
type spans struct {
	config    *Config
	share     *monitor.Share
	telemetry *metadata.TelemetryBuilder
	id        attribute.KeyValue // of the processor, for its telemetry
	annotator annotator
}

// newSpans makes the processor. The config has been validated.
func newSpans(c *Config, set processor.Settings) (*spans, error) {
	conditions, err := parse(c.Conditions)
	if err != nil {
		return nil, err
	}
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	s := &spans{config: c, share: monitor.Join(), telemetry: telemetry, id: attribute.String("processor", set.ID.String())}
	if own := c.Sampling; own != nil {
		s.share = monitor.Claim("processor "+set.ID.String(), monitor.NewConfig(*own))
	}
	s.share.Limit("processor "+set.ID.String(), c.Slow)
	s.annotator = annotator{
		conditions:  conditions,
		slowIsError: c.MarkSlowAsError,
		scope:       emit.Scope(set.BuildInfo.Version),
		log:         set.Logger,
		silent:      c.ErrorMode == ottl.SilentError,
	}
	return s, nil
}

func (s *spans) start(context.Context, component.Host) error {
	m, err := s.share.Start()
	if err != nil {
		return err
	}
	s.annotator.monitor = m
	s.annotator.locator = locate.New(m.Root(), s.config.NodeName, s.config.AssumeLocal)
	return nil
}

// shutdown comes after the last batch; also for a processor that never started.
func (s *spans) shutdown(context.Context) error {
	s.share.Stop()
	s.telemetry.Shutdown()
	return nil
}

// process never gives an error: a span that cannot be annotated is passed on as it came.
func (s *spans) process(ctx context.Context, batch ptrace.Traces) (ptrace.Traces, error) {
	t := s.annotator.annotate(batch)
	t.tell(ctx, s.telemetry, s.id)
	return batch, nil
}
