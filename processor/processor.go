//go:build linux && (amd64 || arm64)

package processor

import (
	"context"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"golang.org/x/time/rate"

	"github.com/stallspan/stallspan/internal/emit"
	_ "github.com/stallspan/stallspan/internal/helper/separate" // a Collector may be asked to give its capabilities up
	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/processor/internal/metadata"
)

// stallspanProcessor is the processor, from its creation to its shutdown.
type stallspanProcessor struct {
	config    *Config
	share     *monitor.Share
	telemetry *metadata.TelemetryBuilder
	id        attribute.KeyValue // of the processor, for its telemetry
	annotator annotator
}

// newProcessor returns a processor with a valid config.
func newProcessor(c *Config, set processor.Settings) (*stallspanProcessor, error) {
	conditions, err := parse(c.Conditions)
	if err != nil {
		return nil, err
	}
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	p := &stallspanProcessor{
		config: c, share: monitor.Join(), telemetry: telemetry, id: attribute.String("processor", set.ID.String()),
	}
	if own := c.Sampling; own != nil {
		p.share = monitor.Claim("processor "+set.ID.String(), monitor.NewConfig(*own))
	}
	p.share.Limit("processor "+set.ID.String(), c.Slow)
	p.annotator = annotator{
		conditions: conditions,
		show:       c.show(),
		scope:      emit.Scope(set.BuildInfo.Version),
		log:        set.Logger,
		silent:     c.ErrorMode == ottl.SilentError,
		panics:     rate.Sometimes{Interval: time.Minute},
		failures:   rate.Sometimes{Interval: time.Minute},
	}
	return p, nil
}

func (p *stallspanProcessor) start(context.Context, component.Host) error {
	m, err := p.share.Start()
	if err != nil {
		return err
	}
	p.annotator.monitor = m
	p.annotator.locator = locate.New(m.Root(), p.config.NodeName, p.config.AssumeLocal)
	m.Jobs.ExpectSpans(m.Owners.Client)
	return nil
}

// shutdown is called after the last batch, also for a processor that never started.
func (p *stallspanProcessor) shutdown(context.Context) error {
	p.share.Stop()
	p.telemetry.Shutdown()
	return nil
}

// process annotates a batch. It returns no error: a span that cannot be annotated is passed on unchanged.
func (p *stallspanProcessor) process(ctx context.Context, batch ptrace.Traces) (ptrace.Traces, error) {
	t := p.annotator.annotate(batch)
	t.record(ctx, p.telemetry, p.id)
	return batch, nil
}
