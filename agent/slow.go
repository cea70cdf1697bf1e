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

// slowOptions define when a window is slow, as flags of run and keys of the agent's config.
type slowOptions struct {
	baseline    *string // nil for the default file; "" or "off" for none
	flag        string  // that names the file; "" where a config does
	factor      float64
	load, epoch time.Duration
}

func (o *slowOptions) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	o.flag = "--baseline"
	flags.Func("baseline", "compare loads and epochs with earlier ones in this `file`, or \"off\"\n(default: see docs/commands.md)",
		func(path string) error { o.baseline = &path; return nil })
	flags.Func("slow-factor", "a load or epoch is slow above so many `times` the usual p95 (default 1.5)", o.setFactor)
	durationFlag(flags, &o.load, "slow-load", "a model load is slow above this `duration`")
	durationFlag(flags, &o.epoch, "slow-epoch", "an epoch is slow above this `duration`")
}

func (o *slowOptions) setFactor(text string) (err error) {
	if o.factor, err = strconv.ParseFloat(text, 64); err != nil || !(o.factor >= 1 && o.factor <= 1000) {
		return errors.New("give a number from 1 to 1000")
	}
	return nil
}

// monitor returns the monitor's settings. The problem is why there is no file although it was not turned off; the error
// is a wrong setting.
func (o *slowOptions) monitor() (s monitor.Slow, problem, err error) {
	s = monitor.Slow{Factor: o.factor, Load: o.load, Epoch: o.epoch}
	if s.Baseline, problem = baselineFile(o.baseline, cmp.Or(o.flag, "slow.baseline")); problem != nil && o.baseline != nil {
		return s, nil, problem
	}
	return s, problem, s.Check()
}

// check returns the first wrong setting of a config. A service has no working folder, so paths are absolute.
func (o *slowOptions) check() error {
	if o.baseline != nil && *o.baseline != "" && *o.baseline != baseline.Off {
		if err := (monitor.Slow{Baseline: *o.baseline}).Check(); err != nil {
			return err
		}
	}
	_, _, err := o.monitor()
	return err
}

// noBaselines is the warning for a default file that cannot be used.
func noBaselines(err error) error {
	return fmt.Errorf("windows are not compared with earlier ones: %w", err)
}

// baselineFile is the absolute path of the baselines, "" for none. A nil path is the default one; option sets another.
func baselineFile(file *string, option string) (string, error) {
	switch {
	case file == nil:
		path, err := baseline.DefaultPath()
		if err != nil {
			err = fmt.Errorf("%w, or name a file with %s", err, option)
		}
		return path, err
	case *file == "" || *file == baseline.Off:
		return "", nil
	}
	path, err := filepath.Abs(*file)
	if err != nil {
		return "", fmt.Errorf("%s: give the absolute path: %w", *file, err)
	}
	return path, nil
}
