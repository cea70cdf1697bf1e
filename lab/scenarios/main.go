//go:build linux

// Scenarios runs labelled work on slow storage under a monitor. It prints how often the diagnosis was right and how
// large its errors were; package scenario describes the method. It needs root and skips itself without it.
//
//	make scenarios                                   all cases in five variants, in under half an hour
//	make scenarios SCENARIOS=-short                  a few cases once, in two minutes
//	make scenarios SEED=3 SCENARIOS='-case load'     some cases, with other variants
//	make scenarios SCENARIOS=-replay                 the same recordings with the present estimator
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/lab/pipeline"
	"github.com/stallspan/stallspan/lab/scenario"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// options are the flags.
type options struct {
	short    bool
	cases    string
	seed     uint64
	variants int
	replay   bool
	shared   bool
	out      string
	folder   string
	markdown string

	failed []string // attempts that could not run
}

func main() {
	if slowdisk.Serve() || pipeline.Main() {
		return
	}
	var o options
	flag.BoolVar(&o.short, "short", false, "one short variant of some cases")
	flag.StringVar(&o.cases, "case", "", "only cases whose name matches this `regexp`")
	flag.Uint64Var(&o.seed, "seed", 1, "another `number` makes other variants")
	flag.IntVar(&o.variants, "variants", 5, "of each case, at most 50")
	flag.BoolVar(&o.replay, "replay", false, "run nothing: replay the recordings of the last run")
	flag.BoolVar(&o.shared, "shared", false, "the jobs get no cgroup of their own, as a plain user's have none")
	flag.StringVar(
		&o.out,
		"out",
		"",
		"`file` for the results (default build/scenarios.json, with -short or -shared in its name)",
	)
	flag.StringVar(&o.folder, "recordings", "", "`folder` of the recordings (default the same without .json)")
	flag.StringVar(&o.markdown, "markdown", "", "also write the tables into this `page`, between its marks")
	flag.Parse()
	o.complete()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	code, err := o.main(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scenarios:", err)
	}
	os.Exit(code)
}

// complete sets the default paths.
func (o *options) complete() {
	place := "build/scenarios"
	if o.shared {
		place += "-shared"
	}
	if o.short {
		place += "-short"
	}
	if o.out == "" {
		o.out = place + ".json"
	}
	if o.folder == "" {
		o.folder = place
	}
}

func (o *options) main(ctx context.Context) (code int, err error) {
	wanted, err := regexp.Compile(o.cases)
	if err != nil {
		return 2, fmt.Errorf("-case: %w", err)
	}
	if o.variants < 1 || o.variants > scenario.MaxVariants {
		return 2, fmt.Errorf("-variants %d: choose 1 to %d", o.variants, scenario.MaxVariants)
	}
	var results []*scenario.Result
	if o.replay {
		results, err = scenario.Replay(o.folder, wanted)
	} else {
		if lacks := scenario.Lacks(ctx); lacks != nil {
			fmt.Println("skipped:", lacks)
			return 0, nil
		}
		results, err = o.run(ctx, wanted)
	}
	if err != nil && len(results) == 0 {
		return 1, err
	}
	return o.finish(results, err)
}

// wanted returns the names of the cases that match -case, which is a valid expression.
func (o *options) wanted() (names []string) {
	for _, c := range scenario.Cases() {
		if matches, err := regexp.MatchString(o.cases, c.Name); err == nil && matches {
			names = append(names, c.Name)
		}
	}
	return names
}

// finish prints and writes the score. The exit code reports whether the targets were reached.
func (o *options) finish(results []*scenario.Result, failed error) (int, error) {
	scenario.Order(results)
	score := scenario.Sum(results)
	score.Shared, score.Failed, score.Wanted = o.shared, o.failed, o.wanted()
	if o.replay {
		fmt.Println(scenario.LineHeader())
		for _, r := range results {
			fmt.Println(r.Line())
		}
	}
	score.Print(os.Stdout)
	if err := scenario.WriteJSON(o.out, score); err != nil {
		failed = errors.Join(failed, err)
	}
	if o.markdown != "" {
		name := "own cgroup"
		if o.shared {
			name = "shared cgroup"
		}
		failed = errors.Join(failed, scenario.Rewrite(o.markdown, name, score.Markdown()))
	}
	if failed != nil {
		return 1, failed
	}
	if len(score.Cases) == score.Void {
		return 1, o.nothing(len(score.Cases))
	}
	if o.short {
		return o.shortCode(score), nil
	}
	if len(o.failed) > 0 {
		return 1, fmt.Errorf("%d tries could not be run: see the lines that begin with FAILED", len(o.failed))
	}
	missed := score.Missed()
	for _, m := range missed {
		fmt.Println("missed:", m)
	}
	if len(missed) > 0 && o.cases == "" {
		return 1, nil
	}
	return 0, nil
}

// nothing returns why no window was judged: all are void, or none ran.
func (o *options) nothing(windows int) error {
	if windows > 0 {
		return fmt.Errorf(
			"all of %d windows are void, so nothing is proved: run it again on an idle machine, or with another -seed",
			windows,
		)
	}
	return fmt.Errorf("no case of this form matches -case %q: see docs/internals/benches.md for their names", o.cases)
}

// shortCode allows one wrong verdict in a short run, because one window a case is too few for rates. A verdict that was
// right on the second attempt does not fail the run; the figures count both attempts.
func (o *options) shortCode(score *scenario.Score) int {
	right := map[string]bool{}
	for _, r := range score.Cases {
		if r.Void == "" && r.Right() {
			right[fmt.Sprint(r.Name, r.Seed)] = true
		}
	}
	wrong := map[string]bool{} // windows without a right attempt
	for _, r := range score.Cases {
		if r.Void != "" || r.Right() || right[fmt.Sprint(r.Name, scenario.Retry(r.Seed))] {
			continue
		}
		wrong[r.Name] = true
	}
	if len(wrong) > 1 {
		fmt.Printf("%d wrong verdicts\n", len(wrong))
		return 1
	}
	return 0
}
