//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
)

// change is something that a replay predicts, and that can be tried.
type change struct {
	name      string
	arguments func(args []string) bool // changes a job's arguments; false if there is nothing to change
	predicted func(r *result) float64
}

// changes are those of programs/images.py.
var changes = []change{
	{"a GPU twice as fast", func(args []string) bool {
		return scale(args, "--step", func(s float64) string { return strconv.FormatFloat(s/2, 'f', 4, 64) })
	}, func(r *result) float64 { return r.FasterGPU }},
	{"twice the workers", func(args []string) bool {
		return scale(args, "--workers", func(n float64) string { return strconv.Itoa(int(2 * n)) })
	}, func(r *result) float64 { return r.MoreWorkers }},
}

// scale changes the number after a flag, unless it is 0 or not there.
func scale(args []string, flag string, by func(float64) string) bool {
	i := slices.Index(args, flag)
	if i < 0 || i+1 >= len(args) {
		return false
	}
	value, err := strconv.ParseFloat(args[i+1], 64)
	if err != nil || value == 0 {
		return false
	}
	args[i+1] = by(value)
	return true
}

// tried is a prediction for a window, held against a second run with the change.
type tried struct {
	Job       string  `json:"job"`
	Seed      uint64  `json:"seed"`
	Window    string  `json:"window"`
	Change    string  `json:"change"`
	Predicted float64 `json:"predicted"`
	Measured  float64 `json:"measured"`
	Void      string  `json:"void,omitempty"`
}

func (t *tried) off() float64 { return math.Abs(t.Predicted-t.Measured) / t.Measured }

// tryChanges runs the chosen jobs as they are and with each change, and compares the durations of their windows with
// what the replay of the first run predicted.
func (o *options) tryChanges(ctx context.Context, chosen []entry) error {
	file, err := os.Create(o.out)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := json.NewEncoder(file)
	var off []float64
	for seed := o.seed; seed < o.seed+uint64(o.seeds); seed++ {
		for _, e := range chosen {
			all, err := o.tryJob(ctx, e, seed)
			if err != nil {
				return err
			}
			for _, t := range all {
				fmt.Printf("%-16s %d %s %-20s predicted %.2f, measured %.2f %s\n", t.Job, t.Seed, t.Window, t.Change, t.Predicted,
					t.Measured, t.Void)
				if err := lines.Encode(t); err != nil {
					return err
				}
				if t.Void == "" {
					off = append(off, 100*t.off())
				}
			}
		}
	}
	if len(off) == 0 {
		return errors.New("all predictions are void: run it again on an idle machine")
	}
	fmt.Printf("%d predictions: off by %s at the median, by %s in 90 of 100\n", len(off), of(off, 0.5, "%"),
		of(off, 0.9, "%"))
	return nil
}

// tryJob runs one job and its changes.
func (o *options) tryJob(ctx context.Context, e entry, seed uint64) (all []*tried, err error) {
	before, err := o.perform(ctx, e.made(seed), seed, schedule)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		j := e.made(seed)
		if !c.arguments(j.Args) {
			continue
		}
		j.Name += "-changed"
		after, err := o.perform(ctx, j, seed, schedule)
		if err != nil {
			return nil, err
		}
		for i, r := range before {
			t := &tried{
				Job: e.name, Seed: seed, Window: r.Window, Change: c.name, Predicted: c.predicted(r),
				Measured: r.Seconds / after[i].Seconds,
			}
			switch {
			case t.Predicted == 0:
				t.Void = "it was not predicted"
			case r.Void != "" || after[i].Void != "":
				t.Void = r.Void + after[i].Void
			case max(r.Foreign, after[i].Foreign) > foreign:
				t.Void = "other programs took CPU time"
			}
			all = append(all, t)
		}
	}
	return all, nil
}
