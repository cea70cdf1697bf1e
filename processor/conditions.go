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

// DefaultConditions returns the conditions of a config without any: loads, checkpoints, epochs and steps by the words
// that programs name them with, whatever comes in front. README.md has the programs.
func DefaultConditions() []string {
	const model, end = `(model|weight|checkpoint|ckpt)s?`, `$")`
	return []string{
		`IsMatch(span.name, "(?i)(^|[^a-z])((re)?load|loading|restore)[ ._-]?` + model + `([ ._]io_read)?` + end,
		`IsMatch(span.name, "(?i)(^|[^a-z])` + model + `([ ._-]?(artifacts|loader))?[ ._-](load|restore)([ ._]io_read)?` + end,
		`HasPrefix(span.name, "Loading (")`,
		`IsMatch(span.name, "(?i)(^|[^a-z])(save|write)[ ._-]?` + model + `([ ._]io_write)?` + end,
		`IsMatch(span.name, "(?i)(^|[^a-z])` + model + `[ ._-](save|write)([ ._](io_write|write|request|a?sync|finali[sz][a-z]+))?` + end,
		`IsMatch(span.name, "(?i)^([a-z0-9_]+[.:/])*((run|train|training|one)[ _.-]?){0,3}epoch([ _.#/-]*[0-9]+)?` + end +
			` and not IsMatch(span.name, "(?i)val|test")`,
		`IsMatch(span.name, "(?i)(^|[^a-z])train(ing)?[ ._-](single[ ._-])?(step|iteration)([ _.#/-]*[0-9]+)?` + end,
		`IsMatch(span.name, "^rl[.][a-z0-9_]+[.](step|checkpointing)$") and not IsMatch(span.name, "[.](agent|env|episode|rollout)[.]")`,
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
