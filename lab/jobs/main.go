//go:build linux

// Jobs runs real programs on slow storage under `stallspan run`. It compares the reports with what the programs logged,
// and with reruns from memory. docs/internals/benches.md describes the method. It needs root, and Debian's Python
// packages, which .ci/run installs.
//
// Seeds 1 to 3 are for tuning. Figures are shown for seeds from 101 on, with which nothing is ever tuned.
//
//	make jobs                                  all jobs with seed 101
//	make jobs SEED=1 JOBS='-only images'       some of them, with a seed for tuning
//	make jobs JOBS=-short                      six of them, as in CI
//	make jobs JOBS='-evidence both'            each with and without the scheduler's evidence
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/test/slowdisk"
)

// options are the flags.
type options struct {
	tools
	seed     uint64
	seeds    int
	repeat   int
	only     string
	short    bool
	list     bool
	known    bool
	whatIf   bool
	again    bool
	remedies bool
	agent    bool
	runs     int // of the demo
	user     string
	sums     string
	evidence string
	out      string
	markdown string
}

// cpus is the number of CPUs of this machine.
var cpus = float64(runtime.NumCPU())

func main() {
	if slowdisk.Serve() {
		return
	}
	var o options
	flag.Uint64Var(&o.seed, "seed", 101,
		"`number` that draws sizes, rates and periods; 1 to 3 are for tuning, 101 and up are not")
	flag.IntVar(&o.seeds, "seeds", 1, "how many seeds, from -seed on")
	flag.IntVar(&o.repeat, "repeat", 1, "how often each job runs")
	flag.StringVar(&o.only, "only", "", "only jobs whose name matches this `regexp`")
	flag.BoolVar(&o.short, "short", false, "six short jobs")
	flag.BoolVar(&o.known, "known", false, "check the truth itself, with programs that sleep where others read")
	flag.BoolVar(&o.whatIf, "what-if", false, "try what the replay predicts: a faster GPU, and more workers")
	flag.BoolVar(&o.remedies, "remedies", false, "follow the remedies for data from S3, and measure what that gains")
	flag.BoolVar(&o.agent, "agent", false,
		"run an agent next to each job, and compare its counters of GPU time with the ledger of run")
	flag.BoolVar(&o.again, "again", false,
		"run nothing: replay the recordings in -keep, and judge them by the logs of their runs")
	flag.IntVar(&o.runs, "runs", 0, "run the demo `number` times instead of jobs")
	flag.StringVar(&o.user, "user", "", "run the jobs, or the demo, as this `user`")
	flag.StringVar(&o.sums, "sum", "", "run nothing: sum up the results in the files that this `pattern` names")
	flag.BoolVar(&o.list, "list", false, "run nothing: print what the jobs of this seed are made of")
	flag.StringVar(&o.evidence, "evidence", schedule, "schedule, sampled (without the scheduler's evidence) or both")
	flag.StringVar(&o.stallspan, "stallspan", "build/stallspan", "the `program`")
	flag.StringVar(&o.library, "library", "build/fakenvml", "`folder` of the driver's stand-in")
	flag.StringVar(&o.programs, "programs", "lab/jobs/programs", "`folder` of the programs")
	flag.StringVar(&o.keep, "keep", "build/jobs", "`folder` for reports and recordings")
	flag.StringVar(&o.out, "out", "build/jobs.jsonl", "`file` for the results, a line a window")
	flag.StringVar(&o.markdown, "markdown", "", "also write the tables into this `page`, between its marks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	code, err := o.main(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "jobs:", err)
	}
	os.Exit(code)
}

func (o *options) main(ctx context.Context) (int, error) {
	evidences := []string{o.evidence}
	switch o.evidence {
	case "both":
		evidences = []string{schedule, sampled}
	case schedule, sampled:
	default:
		return 2, fmt.Errorf("-evidence %q: choose schedule, sampled or both", o.evidence)
	}
	if o.sums != "" {
		return o.sumUp(evidences)
	}
	chosen, err := o.chosen()
	if err != nil {
		return 2, err
	}
	if o.list {
		for _, e := range chosen {
			fmt.Println(e.made(o.seed))
		}
		return 0, nil
	}
	if lacks := o.lacks(); lacks != nil {
		fmt.Println("skipped:", lacks)
		return 0, nil
	}
	paths := []*string{&o.stallspan, &o.library, &o.programs, &o.keep, &o.out}
	for _, path := range paths {
		if *path, err = filepath.Abs(*path); err != nil {
			return 2, err
		}
	}
	switch {
	case o.known:
		return 0, o.checkTruth(ctx)
	case o.runs > 0:
		return 0, o.demonstrate(ctx, evidences)
	}
	if err := os.MkdirAll(o.keep, 0o755); err != nil {
		return 1, err
	}
	if o.agent {
		return 0, o.followed(ctx, chosen)
	}
	if o.remedies {
		return 0, o.followRemedies(ctx)
	}
	if o.whatIf {
		return 0, o.tryChanges(ctx, chosen)
	}
	results, failed, err := o.all(ctx, chosen, evidences)
	if err != nil {
		return 1, err
	}
	return o.finish(results, failed, evidences)
}

// demonstrate runs the demo with each kind of evidence.
func (o *options) demonstrate(ctx context.Context, evidences []string) error {
	for _, e := range evidences {
		fmt.Println("evidence:", e)
		if err := o.demos(ctx, o.runs, o.user, e); err != nil {
			return err
		}
	}
	return nil
}

// sumUp prints the tables of results of earlier runs.
func (o *options) sumUp(evidences []string) (int, error) {
	files, err := filepath.Glob(o.sums)
	if err != nil {
		return 2, fmt.Errorf("-sum: %w", err)
	}
	var all []*result
	for _, file := range files {
		some, err := readResults(file)
		if err != nil {
			return 1, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, some...)
	}
	return o.finish(all, 0, evidences)
}

func readResults(path string) (all []*result, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	lines := json.NewDecoder(file)
	for {
		r := &result{}
		if err := lines.Decode(r); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, r)
	}
}

// chosen returns the jobs of -only and -short.
func (o *options) chosen() (chosen []entry, err error) {
	wanted, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	for _, e := range entries() {
		if wanted.MatchString(e.name) && (e.short || !o.short) {
			chosen = append(chosen, e)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no job matches -only %q", o.only)
	}
	return chosen, nil
}

// all runs the chosen jobs and prints a line for each window. A job that cannot run does not stop the others.
func (o *options) all(ctx context.Context, chosen []entry, evidences []string) (all []*result, failed int, err error) {
	file, err := os.Create(o.out)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = file.Close() }()
	lines := json.NewEncoder(file)
	fmt.Println(header)
	for seed := o.seed; seed < o.seed+uint64(o.seeds); seed++ {
		for _, e := range chosen {
			for range o.repeat {
				for _, evidence := range evidences {
					if ctx.Err() != nil {
						return all, failed, ctx.Err()
					}
					j := e.made(seed)
					if o.user != "" {
						j.User = o.user
					}
					perform := o.perform
					if o.again {
						perform = o.judgeAgain
					}
					results, err := perform(ctx, j, seed, evidence)
					if err != nil {
						failed++
						fmt.Printf("FAILED %s, seed %d: %v\n", e.name, seed, err)
					}
					for _, r := range results {
						fmt.Println(r.line())
						if err := lines.Encode(r); err != nil {
							return all, failed, err
						}
					}
					all = append(all, results...)
				}
			}
		}
	}
	return all, failed, nil
}

// lacks returns what the machine lacks.
func (o *options) lacks() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("slow storage needs root")
	}
	if text, err := tool(python, "-c", "import torch, torchvision, numpy, PIL, sklearn, h5py, boto3"); err != nil {
		return fmt.Errorf("missing Python packages of Debian, which .ci/run installs: %s", lastLine(text))
	}
	for _, name := range []string{"fio", "gcc", "mkfs.btrfs", "mkfs.ext4", "losetup", "setpriv", "ip"} {
		if _, err := tool("which", name); err != nil {
			return fmt.Errorf("needs %s, which .ci/run installs", name)
		}
	}
	return nil
}
