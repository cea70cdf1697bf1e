//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/stallspan/stallspan/internal/scenario"
)

// run runs all variants and prints a line a window. A variant that cannot be run is an error, and the others go on.
func (o *options) run(ctx context.Context, wanted *regexp.Regexp) (results []*scenario.Result, err error) {
	if wanted.String() == "" {
		if err := os.RemoveAll(o.folder); err != nil { // the recordings of an earlier run would be replayed with this one's
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
			of, err := o.once(ctx, r, &c, scenario.Seed(o.seed, i))
			if ctx.Err() != nil {
				return results, errors.New("interrupted")
			}
			if err != nil {
				fmt.Println("FAILED", c.Name, err)
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

// once runs a variant, and another one instead where the first is void. In the short form one that was judged wrong is
// followed by another, too, and both count. Everything stays among the results.
func (o *options) once(ctx context.Context, r *scenario.Runner, c *scenario.Case, seed uint64) ([]*scenario.Result, error) {
	first, err := o.variant(ctx, r, c, seed)
	if ctx.Err() != nil || err == nil && !o.again(first) {
		return first, err
	}
	second, again := o.variant(ctx, r, c, scenario.Retry(seed))
	if again != nil {
		return first, errors.Join(err, again)
	}
	first = append(first, second...)
	scenario.Supersede(first)
	return first, nil
}

func (o *options) variant(ctx context.Context, r *scenario.Runner, c *scenario.Case, seed uint64) ([]*scenario.Result, error) {
	results, err := r.Run(ctx, c.Variant(seed, o.short))
	for _, result := range results {
		fmt.Println(result.Line())
		for _, p := range result.Problems {
			fmt.Println("      ", p)
		}
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
