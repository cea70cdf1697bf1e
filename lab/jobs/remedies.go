//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// remedy is a job that follows what the report of its first window advises. The server stays slow.
type remedy struct {
	entry
	wanted string // the begin of the advice
	more   bool   // it has eight times as many requests at once, and the range is for that
}

// The advice for data from a network.
const (
	adviceMore  = "Ask for more at a time, or for several things at once"
	adviceAhead = "Fetch ahead with several requests at once, or keep a copy on a local disk"
)

// remedies are those for S3. A server that is far away is used, because otherwise the advice is to look at its process.
func remedies() []remedy {
	late := func(c chance, follow string, more ...string) job {
		j := s3(c, "objects", append(more, "--follow", follow)...)
		j.Server = append(j.Server, "-rate", "0", "-total", "0", "-round-trip", c.number(2, 4)+"ms",
			"-before", c.number(40, 70)+"ms")
		return j
	}
	small := func(c chance, follow string) job {
		j := late(c, follow, "--range", strconv.Itoa(c.between(24, 48)<<10), "--objects", "30")
		j.Server = append(j.Server, "-round-trip", c.number(12, 20)+"ms", "-before", "0", "-spread", "0")
		return j
	}
	limited := func(j job, c chance, follow string) job {
		j.Args = append(j.Args, "--follow", follow)
		j.Server = append(j.Server, "-total", "0", "-round-trip", c.number(2, 6)+"ms",
			"-rate", strconv.Itoa(c.between(5, 9)<<20))
		return j
	}
	return []remedy{
		{entry{"prefetch", true, func(c chance) job { return late(c, "prefetch") }}, adviceAhead, true},
		{entry{"copy", false, func(c chance) job { return late(c, "copy") }}, adviceAhead, false},
		{entry{"larger", false, func(c chance) job { return small(c, "larger") }}, adviceMore, false},
		{entry{"several", false, func(c chance) job { return small(c, "prefetch") }}, adviceMore, true},
		{entry{"connections", false, func(c chance) job { return limited(s3Model(c, 1), c, "connections") }}, adviceAhead,
			true},
		{entry{"model-copy", false, func(c chance) job { return limited(s3Model(c, 1), c, "copy") }}, adviceAhead, false},
		{entry{"feeders", false, func(c chance) job {
			j := limited(s3Shards(c), c, "prefetch")
			j.Server = append(j.Server, "-rate", strconv.Itoa(c.between(600, 1000)<<10))
			j.Args = append(j.Args, "--threads", "1", "--step", "0.03")
			return j
		}}, adviceAhead, true},
	}
}

// followed is what following a remedy gained.
type followed struct {
	Case      string  `json:"case"`
	Seed      uint64  `json:"seed"`
	Verdict   string  `json:"verdict"`
	Remedy    string  `json:"remedy"`
	Expected  bool    `json:"expected"` // the remedy is the one that is followed
	Cold      float64 `json:"cold_s"`
	After     float64 `json:"after_s"`
	Predicted float64 `json:"predicted"`     // without waiting for peers
	Low       float64 `json:"low,omitempty"` // the range of that, or with more requests at once
	High      float64 `json:"high,omitempty"`
	Measured  float64 `json:"measured"`
	Void      string  `json:"void,omitempty"`
}

// followRemedies runs the jobs that follow remedies, and prints what that gained.
func (o *options) followRemedies(ctx context.Context) error {
	file, err := os.Create(o.out)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	lines := json.NewEncoder(file)
	fmt.Print("| case, seed | verdict | before | after | gain: predicted (range), measured | remedy |\n",
		"|---|---|---|---|---|---|\n")
	for seed := o.seed; seed < o.seed+uint64(o.seeds); seed++ {
		for _, r := range remedies() {
			if o.short && !r.short {
				continue
			}
			results, err := o.perform(ctx, r.made(seed), seed, schedule)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			cold := results[0]
			f := &followed{
				Case: r.name, Seed: seed, Verdict: string(cold.Verdict), Remedy: cold.Remedy,
				Expected: strings.HasPrefix(cold.Remedy, r.wanted), Cold: cold.Seconds, After: cold.Seconds / cold.Measured,
				Predicted: cold.Predicted, Low: cold.Low, High: cold.High, Measured: cold.Measured, Void: cold.VoidSpeedup,
			}
			if r.more {
				f.Low, f.High = cold.MoreLow, cold.MoreHigh
			}
			if f.Void == otherWork { // the server is one, and the way to it
				f.Void = ""
			}
			if err := lines.Encode(f); err != nil {
				return err
			}
			fmt.Print(f.row())
		}
	}
	return nil
}

func (f *followed) row() string {
	advice, _, _ := strings.Cut(f.Remedy, ":")
	advice, _, _ = strings.Cut(advice, " (")
	if !f.Expected {
		advice = "**another**: " + advice
	}
	gain := fmt.Sprintf("%.2f (%.2f to %.2f), %.2f", f.Predicted, f.Low, f.High, f.Measured)
	if f.Void != "" {
		gain += " (void: " + f.Void + ")"
	}
	return fmt.Sprintf("| %s, %d | %s | %.2f s | %.2f s | %s | %s |\n", f.Case, f.Seed, f.Verdict, f.Cold, f.After, gain,
		advice)
}
