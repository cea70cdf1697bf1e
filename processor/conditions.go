//go:build linux && (amd64 || arm64)

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

// DefaultConditions returns the conditions of a config without any: the model loads that known programs trace, and
// epochs by their usual names. README.md has the source of each name.
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

// parse parses conditions. The context of a path, as in "span.name", may be left out. The error has each condition that
// does not parse, with the position in it.
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

// parsers returns the parser of conditions on spans, in a collection: only there it accepts paths without a context.
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

// met reports whether a span meets one of the conditions. A condition with an error is not met, and is passed to
// failed.
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
