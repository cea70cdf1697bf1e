//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/stallspan/stallspan/lab/scenario"
)

// run runs all variants and prints a line for each window. A variant that cannot run is an error; the others continue.
func (o *options) run(ctx context.Context, wanted *regexp.Regexp) (results []*scenario.Result, err error) {
	if wanted.String() == "" {
		if err := scenario.ForgetAll(o.folder); err != nil { // else a replay would mix both runs
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

// attempt is the type of Runner.Run.
type attempt func(context.Context, scenario.Variant) ([]*scenario.Result, error)

// once runs a variant. If it is void or cannot run, once runs another variant instead. In the short form a wrong
// verdict also gets a second attempt. All results are kept and counted, and all failed attempts are recorded. The error
// is that of the last attempt.
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
