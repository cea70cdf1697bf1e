//go:build linux

package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stallspan/stallspan/lab/pipeline"
)

// Runner runs variants, one at a time.
type Runner struct {
	Folder string  // of the recordings
	Shared bool    // the jobs have no cgroup of their own, like those of a plain user
	Rate   float64 // from Calibrate
}

// longest is the time limit of a variant.
const longest = 2 * time.Minute

// Run runs a variant on its storage under a monitor. If that was slow, it runs the work again from memory. It keeps the
// recording and returns a result for each window, or an error and no result.
func (r *Runner) Run(ctx context.Context, v Variant) (results []*Result, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	b := &bench{v: &v, shared: r.Shared, rate: r.Rate}
	defer func() { err = errors.Join(err, b.close()) }()
	if err := b.open(ctx); err != nil {
		return nil, err
	}
	if err := b.ready(ctx); err != nil {
		return nil, err
	}
	keep, err := keepRecording(r.Folder, &v)
	if err != nil {
		return nil, err
	}
	windows, problems, err := b.watch(ctx, keep)
	if err := errors.Join(err, keep.close()); err != nil {
		return nil, err
	}
	if results, err = b.results(ctx, windows); err != nil {
		return nil, err
	}
	for _, result := range results {
		for _, problem := range problems {
			result.Problems = append(result.Problems, problem.Error())
		}
	}
	return results, saveResults(r.Folder, &v, results)
}

// results reruns cold stages and compares the reports with the truth.
func (b *bench) results(ctx context.Context, windows []*watched) (results []*Result, err error) {
	var truths []Truth
	for i, w := range windows {
		seconds := w.report.Duration().Seconds()
		result := &Result{
			Name: b.v.Name, Seed: b.v.Seed, About: b.v.About(), Window: w.report.ID, Seconds: seconds, Got: found(w.report),
		}
		result.Got.Device = w.device
		if w.stage == nil {
			result.Name += wholeEnd
			result.Label, result.Truth = b.v.Whole, join(seconds, truths)
			last := windows[len(b.v.Stages)-1]
			result.Got.ChangeAfter = changed(w.polls, w.report, last.report, last.stage.Label)
		} else {
			if len(b.v.Stages) > 1 {
				result.Name += fmt.Sprintf("/%d", i+1)
			}
			result.Label = w.stage.Label
			if result.Truth, err = b.truth(ctx, w); err != nil {
				return nil, err
			}
			truths = append(truths, result.Truth)
			result.Got.VerdictAfter = settled(w.polls, w.report, result.Label)
		}
		result.judge()
		results = append(results, result)
	}
	return results, nil
}

// truth returns the truth of one stage, after a rerun if that adds information.
func (b *bench) truth(ctx context.Context, w *watched) (t Truth, err error) {
	seconds := w.report.Duration().Seconds()
	switch {
	case w.stage.Idle:
		t.finish(seconds)
		return t, nil
	case !w.stage.cold():
		return truth(seconds, &w.stage.Plan, &w.ran, nil), nil
	}
	again, err := b.rerun(ctx, w.stage)
	if err != nil {
		return t, err
	}
	t = truth(seconds, &w.stage.Plan, &w.ran, &again)
	t.Mismatch = again.Checksum != w.ran.Checksum
	return t, nil
}

// Calibrate returns the Rate for a Runner.
func Calibrate() (float64, error) { return pipeline.Calibrate() }
