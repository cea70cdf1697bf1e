package agent

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/internal/baseline"
	"github.com/stallspan/stallspan/internal/monitor"
)

// slowOptions say when a window is slow, as flags of run and keys of the agent's config.
type slowOptions struct {
	baseline    *string // nil for the default file; "" or "off" for none
	flag        string  // that names the file; "" where a config does
	factor      float64
	load, epoch time.Duration
}

func (o *slowOptions) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.flag = "--baseline"
	flags.Func("baseline", "compare loads and epochs with earlier ones in this `file`; \"off\" for no such file (default: see docs/commands.md)",
		func(path string) error { o.baseline = &path; return nil })
	flags.Func("slow-factor", "`times` the usual p95 that a load or epoch may take (default 1.5)", o.setFactor)
	flags.DurationVar(&o.load, "slow-load", 0, "a model load is slow that takes longer than this `duration`")
	flags.DurationVar(&o.epoch, "slow-epoch", 0, "an epoch is slow that takes longer than this `duration`")
}

func (o *slowOptions) setFactor(text string) (err error) {
	if o.factor, err = strconv.ParseFloat(text, 64); err != nil || !(o.factor >= 1 && o.factor <= 1000) {
		return errors.New("give a number from 1 to 1000")
	}
	return nil
}

// monitor is what the monitor is told. The problem is why there is no file where one was not turned off; the error says
// what was asked for wrongly.
func (o *slowOptions) monitor() (s monitor.Slow, problem, err error) {
	s = monitor.Slow{Factor: o.factor, Load: o.load, Epoch: o.epoch}
	if s.Baseline, problem = baselineFile(o.baseline, cmp.Or(o.flag, "slow.baseline")); problem != nil && o.baseline != nil {
		return s, nil, problem
	}
	return s, problem, s.Check()
}

// check says what a config asks for wrongly. A service has no folder that a relative path could be meant in.
func (o *slowOptions) check() error {
	if o.baseline != nil && *o.baseline != "" && *o.baseline != baseline.Off {
		if err := (monitor.Slow{Baseline: *o.baseline}).Check(); err != nil {
			return err
		}
	}
	_, _, err := o.monitor()
	return err
}

// baselineFile is the absolute path of the file that was asked for, "" for none. option is how another one can be named.
func baselineFile(asked *string, option string) (string, error) {
	switch {
	case asked == nil:
		path, err := baseline.DefaultPath()
		if err != nil {
			err = fmt.Errorf("%w, or name a file with %s", err, option)
		}
		return path, err
	case *asked == "" || *asked == baseline.Off:
		return "", nil
	}
	path, err := filepath.Abs(*asked)
	if err != nil {
		return "", fmt.Errorf("%s: give the absolute path: %w", *asked, err)
	}
	return path, nil
}
