//go:build linux

// Detect runs programs that announce nothing next to an agent. It compares the windows that the agent detects with what
// the programs logged. docs/internals/benches.md describes the method. It needs root, and Debian's Python packages,
// which .ci/run installs.
//
//	make detect                                    the cases for development, with seed 1
//	make detect SEED=2 DETECT='-only torch'        some of them, with other sizes and delays
//	make detect DETECT=-short                      three short ones, as in CI
//	make detect DETECT=-again                      compare the logs and windows of the last run again
//	make detect DETECT=-alone                      what the programs log, without an agent
//	make detect DETECT=-heldout                    the cases and seeds that nothing was tuned with
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/lab/scenario"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// options are the flags.
type options struct {
	stallspan string
	library   string
	programs  string
	keep      string
	out       string
	markdown  string
	only      string
	seed      uint64
	heldout   bool
	short     bool
	list      bool
	remedies  bool
	again     bool
	alone     bool
	nfs       string
}

// Seeds up to lastTuned are for development, and those from firstHeldout on for the cases that are held out.
const (
	lastTuned    = 99
	firstHeldout = 201
)

// python is Debian's, for which the packages are.
const python = "/usr/bin/python3"

func main() {
	if slowdisk.Serve() {
		return
	}
	var o options
	flag.Uint64Var(&o.seed, "seed", 0, "`number` that draws sizes, delays, formats and order; default 1, or 201 of -heldout")
	flag.BoolVar(&o.heldout, "heldout", false, "the cases that are held out, with a seed from 201 on")
	flag.BoolVar(&o.short, "short", false, "three short cases")
	flag.BoolVar(&o.list, "list", false, "run nothing: print what the cases of this seed are made of")
	flag.BoolVar(&o.remedies, "remedies", false, "follow the remedies of loads, and measure what they gain")
	flag.BoolVar(&o.again, "again", false, "run nothing: compare the logs and windows of the last run")
	flag.BoolVar(&o.alone, "alone", false, "run no agent: print what the programs log, to see whether they are right")
	flag.StringVar(&o.nfs, "nfs", "", "have all files on a mount of this `version` of NFS, as 3 or 4.2")
	flag.StringVar(&o.only, "only", "", "only cases whose name matches this `regexp`")
	flag.StringVar(&o.stallspan, "stallspan", "build/stallspan", "the `program`")
	flag.StringVar(&o.library, "library", "build/fakenvml", "`folder` of the driver's stand-in")
	flag.StringVar(&o.programs, "programs", "lab/detect/programs", "`folder` of the programs")
	flag.StringVar(&o.keep, "keep", "build/detect", "`folder` for logs and windows")
	flag.StringVar(&o.out, "out", "build/detect.json", "`file` for the results")
	flag.StringVar(&o.markdown, "markdown", "", "also write the tables into this `page`, between its marks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	code, err := o.main(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "detect:", err)
	}
	os.Exit(code)
}

func (o *options) main(ctx context.Context) (int, error) {
	if err := o.complete(); err != nil {
		return 2, err
	}
	chosen, err := o.chosen()
	if err != nil {
		return 2, err
	}
	if o.list {
		for _, c := range chosen {
			text, err := json.Marshal(c.plan(o.seed))
			if err != nil {
				return 1, err
			}
			fmt.Println(string(text))
		}
		return 0, nil
	}
	if o.again {
		results, err := o.judge(chosen, nil)
		if err != nil {
			return 1, err
		}
		return 0, o.finish(results)
	}
	if lacks := o.lacks(); lacks != nil {
		fmt.Println("skipped:", lacks)
		return 0, nil
	}
	if o.remedies {
		return o.followRemedies(ctx)
	}
	results, err := o.run(ctx, chosen)
	if err != nil {
		return 1, err
	}
	if o.alone {
		return 0, nil
	}
	return 0, o.finish(results)
}

// complete sets the default seed, refuses one of the other part, and makes paths absolute.
func (o *options) complete() (err error) {
	if o.seed == 0 {
		o.seed = 1
		if o.heldout {
			o.seed = firstHeldout
		}
	}
	switch {
	case o.heldout && o.seed < firstHeldout:
		return fmt.Errorf("-heldout with seed %d: choose one from %d on", o.seed, firstHeldout)
	case !o.heldout && o.seed > lastTuned:
		return fmt.Errorf("seed %d: choose one up to %d; others are for -heldout", o.seed, lastTuned)
	}
	for _, path := range []*string{&o.stallspan, &o.library, &o.programs, &o.keep, &o.out} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	return os.MkdirAll(o.keep, 0o755)
}

// chosen returns the cases of -heldout, -only and -short.
func (o *options) chosen() (chosen []entry, err error) {
	wanted, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	all := developed()
	if o.heldout {
		all = heldOut()
	}
	for _, e := range all {
		if wanted.MatchString(e.name) && (e.short || !o.short) {
			chosen = append(chosen, e)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no case matches -only %q", o.only)
	}
	return chosen, nil
}

// finish writes and prints the results.
func (o *options) finish(results []*result) error {
	s := sum(results)
	text, err := json.MarshalIndent(struct {
		Seed    uint64    `json:"seed"`
		Heldout bool      `json:"heldout"`
		Score   *score    `json:"score"`
		Cases   []*result `json:"cases"`
	}{o.seed, o.heldout, s, results}, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.out, append(text, '\n'), 0o644); err != nil {
		return err
	}
	fmt.Print("\n", s.figures(), "\n", casesTable(results))
	if o.markdown == "" || !o.heldout { // the page has figures of programs that nothing was tuned with
		return nil
	}
	return scenario.Rewrite(o.markdown, "detect held out", s.figures())
}

// lacks returns what the machine lacks.
func (o *options) lacks() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("slow storage needs root")
	}
	packages := "import torch, numpy"
	if o.heldout {
		packages += ", PIL, h5py, lmdb, pandas, zarr"
	}
	if text, err := exec.Command(python, "-c", packages).CombinedOutput(); err != nil {
		return fmt.Errorf("missing Python packages of Debian, which .ci/run installs: %s", strings.TrimSpace(string(text)))
	}
	for _, name := range []string{"mkfs.ext4", "mount"} {
		if _, err := exec.LookPath(name); err != nil {
			return fmt.Errorf("needs %s, which .ci/run installs", name)
		}
	}
	return nil
}
