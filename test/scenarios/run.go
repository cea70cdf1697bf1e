//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/stallspan/stallspan/test/scenarios/scenario"
)

// run runs all variants and prints a line a window. A variant that cannot be run is an error, and the others go on.
func (o *options) run(ctx context.Context, wanted *regexp.Regexp) (results []*scenario.Result, err error) {
	if wanted.String() == "" {
		if err := scenario.ForgetAll(o.folder); err != nil { // an earlier run's would be replayed with this one's
			return nil, err
		}
	}
	rate, err := scenario.Calibrate()
	if err != nil {
		return nil, err
	}
	r := &scenario.Runner{Folder: o.folder, Shared: o.shared, Rate: rate}
	fmt.Println(scenario.LineHeader())
	var failed []error
	for _, c := range scenario.Cases() {
		if !wanted.MatchString(c.Name) || o.short && !c.Short {
			continue
		}
		for i := range o.count() {
			of, err := o.once(ctx, r.Run, &c, scenario.Seed(o.seed, i))
			if ctx.Err() != nil {
				return results, errors.New("interrupted")
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", c.Name, err))
			}
			results = append(results, of...)
		}
	}
	return results, errors.Join(failed...)
}

func (o *options) count() int {
	if o.short {
		return 1
	}
	return o.variants
}

// attempt is what a Runner's Run does.
type attempt func(context.Context, scenario.Variant) ([]*scenario.Result, error)

// once runs a variant, and another one instead where the first is void or cannot be run. In the short form one that was
// judged wrong is followed by another, too, and both count. Everything stays among the results, and every try that could
// not be run among the failed ones. The error is that of the last try.
func (o *options) once(ctx context.Context, run attempt, c *scenario.Case, seed uint64) ([]*scenario.Result, error) {
	first, err := o.try(ctx, run, c, seed)
	if ctx.Err() != nil || err == nil && !o.again(first) {
		return first, err
	}
	second, err := o.try(ctx, run, c, scenario.Retry(seed))
	first = append(first, second...)
	scenario.Supersede(first)
	return first, err
}

func (o *options) try(ctx context.Context, run attempt, c *scenario.Case, seed uint64) ([]*scenario.Result, error) {
	results, err := run(ctx, c.Variant(seed, o.short))
	for _, result := range results {
		fmt.Println(result.Line())
		for _, p := range result.Problems {
			fmt.Println("      ", p)
		}
	}
	if err != nil && ctx.Err() == nil {
		o.failed = append(o.failed, fmt.Sprintf("%s-%d: %v", c.Name, seed, err))
		fmt.Println("FAILED", o.failed[len(o.failed)-1])
	}
	return results, err
}

func (o *options) again(results []*scenario.Result) bool {
	for _, r := range results {
		if r.Void != "" || o.short && !r.Right() {
			return true
		}
	}
	return false
}
