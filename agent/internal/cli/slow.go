package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/state/baseline"
)

// sectionKey annotates a flag with the title of its section in the help.
const sectionKey = "section"

// Section puts flags under a title of their own in the help. Flags that the command lacks are left out.
func Section(flags *pflag.FlagSet, title string, names ...string) {
	for _, name := range names {
		_ = flags.SetAnnotation(name, sectionKey, []string{title}) // fails only for a flag that is missing
	}
}

// SectionOf is the title of a flag's section; "" for the first one.
func SectionOf(flag *pflag.Flag) string {
	return strings.Join(flag.Annotations[sectionKey], "")
}

// SlowFlags are the flags of run that say when a window is slow.
type SlowFlags struct{ config.Slow }

// Add adds the flags to a command.
func (o *SlowFlags) Add(cmd *cobra.Command) {
	flags := cmd.Flags()
	BaselineFlag(flags, &o.Baseline,
		"compare loads and epochs with earlier ones in this `file`, or \"off\"")
	flags.Func("slow-factor", "a window is slow above so many `times` the usual p95 (default 1.5)", o.setFactor)
	DurationFlag(flags, &o.Load, "slow-load", "a model load is slow above this `duration`")
	DurationFlag(flags, &o.Epoch, "slow-epoch", "an epoch is slow above this `duration`")
	Section(flags, "What is slow", "baseline", "slow-factor", "slow-load", "slow-epoch", "fail-on")
}

// BaselineFlag adds --baseline. An empty path is "off".
func BaselineFlag(flags *pflag.FlagSet, path *string, usage string) {
	flags.Func("baseline", usage, func(text string) error { *path = cmp.Or(text, config.Off); return nil })
}

func (o *SlowFlags) setFactor(text string) (err error) {
	o.Factor, err = strconv.ParseFloat(text, 64)
	if err != nil || o.Factor == 0 || (config.Slow{Factor: o.Factor}).Validate() != nil {
		return errors.New("give a number from 1 to 1000")
	}
	return nil
}

// Resolve returns the settings with the path of the baselines. problem is why there is no default path.
func (o *SlowFlags) Resolve() (s config.Slow, problem, err error) {
	s = o.Slow
	if s.Baseline, err = BaselineFile(o.Baseline, "--baseline"); err != nil && o.Baseline == "" {
		problem, err = err, nil
	}
	if err == nil {
		if err = s.Validate(); err != nil {
			err = fmt.Errorf("--slow-%w", err) // the error begins with the key
		}
	}
	return s, problem, err
}

// NoBaselines is the warning for a default file that cannot be used.
func NoBaselines(err error) error {
	return fmt.Errorf("windows are not compared with earlier ones: %w", err)
}

// BaselineFile returns the absolute path of the file of baselines, or "" for "off". Without a path, it is the default
// one. option names the flag that sets another path.
func BaselineFile(path, option string) (string, error) {
	switch path {
	case "":
		path, err := baseline.DefaultPath()
		if err != nil {
			err = fmt.Errorf("%w, or name a file with %s", err, option)
		}
		return path, err
	case config.Off:
		return "", nil
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%s: give the absolute path: %w", path, err)
	}
	return absolute, nil
}

// SpanFlags are the flags that say how spans show windows.
type SpanFlags struct{ config.Spans }

// Add adds the flags to a command.
func (o *SpanFlags) Add(cmd *cobra.Command) {
	choice := func(into *string, name, usage, wrong string) {
		cmd.Flags().Func(name, usage, func(text string) error {
			*into = text
			if text == "" || o.Validate() != nil {
				return errors.New(wrong)
			}
			return nil
		})
	}
	defer Section(cmd.Flags(), "Telemetry", "name", "slow-status", "span-names", "stall-spans")
	choice(&o.SlowStatus, "slow-status", "`status` of a slow window's span: unset, or error (default unset)",
		"choose unset or error")
	choice(&o.Names, "span-names", "`names` of epochs' spans: grouped, or indexed by their number (default grouped)",
		"choose grouped or indexed")
	choice(&o.Stalls, "stall-spans", "`kind` of stalls' spans: client, or internal (default client)",
		"choose client or internal")
}
