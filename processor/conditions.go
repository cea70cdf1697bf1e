package processor

import (
	"context"
	"errors"
	"fmt"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlspan"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/ottlfuncs"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
)

// DefaultConditions are those of a config that has none: the loads that programs tell of by themselves, and epochs by
// their usual names. README.md says where each name is from.
func DefaultConditions() []string {
	return []string{
		`span.name == "Load model" or span.name == "Load weights" or HasPrefix(span.name, "Loading (")`,
		`span.name == "model.load" or span.name == "model.artifacts.load" or span.name == "inference_models.load"`,
		`IsMatch(span.name, "(?i)^((run|train|training|one)[ _.-]?){0,3}epoch([ _.#-]*[0-9]+)?$")`,
	}
}

type (
	condition  = ottl.Condition[*ottlspan.TransformContext]
	conditions []*condition
)

// parse reads conditions. Paths may begin with their context's name, as in "span.name", or leave "span." out. The error
// tells of each condition that cannot be read, with the position in it.
func parse(texts []string) (conditions, error) {
	parsers, err := parsers()
	if err != nil {
		return nil, err
	}
	var all conditions
	var errs []error
	for i, text := range texts {
		one, err := parsers.ParseConditionsWithContext(ottlspan.ContextName, ottl.NewConditionsGetter([]string{text}), true)
		if err != nil {
			errs = append(errs, fmt.Errorf("conditions[%d]: %q: %w", i, text, err))
		}
		all = append(all, one...)
	}
	return all, errors.Join(errs...)
}

// parsers is the one parser of conditions on spans. Only as one of a collection does it take paths without a context.
func parsers() (*ottl.ParserCollection[conditions], error) {
	functions := ottlfuncs.StandardConverters[*ottlspan.TransformContext]()
	root := ottlfuncs.NewIsRootSpanFactory()
	functions[root.Name()] = root
	set := component.TelemetrySettings{Logger: zap.NewNop()}
	parser, err := ottlspan.NewParser(functions, set, ottlspan.EnablePathContextNames())
	if err != nil {
		return nil, err
	}
	same := func(_ *ottl.ParserCollection[conditions], _ ottl.ConditionsGetter, all []*condition) (conditions, error) {
		return all, nil
	}
	return ottl.NewParserCollection(set, ottl.WithParserCollectionContext(ottlspan.ContextName, &parser,
		ottl.WithConditionConverter(same)))
}

// met says whether a span meets one of the conditions. One that fails is not met, and failed is told of it.
func (all conditions) met(
	rs ptrace.ResourceSpans, ss ptrace.ScopeSpans, span ptrace.Span, failed func(*condition, error),
) bool {
	if len(all) == 0 {
		return false
	}
	at := ottlspan.NewTransformContext(rs, ss, span)
	defer at.Close()
	for _, c := range all {
		ok, err := c.Eval(context.Background(), at)
		if err != nil {
			failed(c, err)
		} else if ok {
			return true
		}
	}
	return false
}
