package agent

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/internal/baseline"
	"github.com/stallspan/stallspan/internal/monitor"
)

// slowOptions say when a window is slow, as flags of run and keys of the agent's config.
type slowOptions struct {
	baseline    *string // nil for the default file; "" or "off" for none
	factor      float64
	load, epoch time.Duration
}

func (o *slowOptions) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Func("baseline", "compare loads and epochs with earlier ones in this `file`; \"off\" for no such file (default: see docs/commands.md)",
		func(path string) error { o.baseline = &path; return nil })
	flags.Float64Var(&o.factor, "slow-factor", 0, "`times` the usual p95 that a load or epoch may take (default 1.5)")
	flags.DurationVar(&o.load, "slow-load", 0, "a model load is slow that takes longer than this `duration`")
	flags.DurationVar(&o.epoch, "slow-epoch", 0, "an epoch is slow that takes longer than this `duration`")
}

// monitor is what the monitor is told. The problem is why there is no file where one was not turned off; the error says
// what was asked for wrongly.
func (o *slowOptions) monitor() (s monitor.Slow, problem, err error) {
	s = monitor.Slow{Factor: o.factor, Load: o.load, Epoch: o.epoch}
	if s.Baseline, problem = baselineFile(o.baseline); problem != nil && o.baseline != nil {
		return s, nil, problem
	}
	return s, problem, s.Check()
}

// baselineFile is the absolute path of the file that was asked for, "" for none.
func baselineFile(asked *string) (string, error) {
	switch {
	case asked == nil:
		return baseline.DefaultPath()
	case *asked == "" || *asked == baseline.Off:
		return "", nil
	}
	path, err := filepath.Abs(*asked)
	if err != nil {
		return "", fmt.Errorf("%s: give the absolute path: %w", *asked, err)
	}
	return path, nil
}
