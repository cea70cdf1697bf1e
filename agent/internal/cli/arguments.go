// Package cli is what commands share: arguments, flags, exit codes, and messages on standard error.
package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stallspan/stallspan/internal/config"
)

// Group makes cmd a command that only has others below it. By itself it prints its help.
func Group(cmd *cobra.Command, commands ...*cobra.Command) {
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		hint := ""
		var names []string
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				names = append(append(names, sub.Name()), sub.Aliases...)
			}
		}
		if near := config.Nearest(args[0], names); near != "" {
			hint = fmt.Sprintf(" (did you mean %q?)", near)
		}
		return fmt.Errorf("unknown command %q%s: see %s --help", args[0], hint, cmd.CommandPath())
	}
	if cmd.RunE == nil {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	cmd.AddCommand(commands...)
}

// NoArguments refuses arguments.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q: see %s --help", args[0], cmd.CommandPath())
	}
	return nil
}

// Needs requires so many arguments, none of them empty. The error is wanted.
func Needs(low, high int, wanted string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < low || len(args) > high || len(args) > 0 && args[0] == "" {
			return errors.New(wanted)
		}
		return nil
	}
}

// FlagError names the flag and the kind of value that it takes, in place of the error of Go's parser.
func FlagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &invalid):
		err = fmt.Errorf("--%s %q: %w", invalid.GetFlag().Name, invalid.GetValue(), valueError(invalid))
	case errors.As(err, &unknown):
		err = unknownFlag(cmd, unknown)
	}
	return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
}

// unknownFlag suggests the flag that was meant. A long one with a single dash, as in -json, is read as letters.
func unknownFlag(cmd *cobra.Command, unknown *pflag.NotExistError) error {
	given, name := "--"+unknown.GetSpecifiedName(), unknown.GetSpecifiedName()
	if letters := unknown.GetSpecifiedShortnames(); letters != "" {
		given = "-" + letters
		name, _, _ = strings.Cut(letters, "=")
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	hint := ""
	if near := config.Nearest(name, names); near != "" {
		hint = fmt.Sprintf(" (did you mean --%s?)", near)
	}
	return fmt.Errorf("unknown flag: %s%s", given, hint)
}

func valueError(invalid *pflag.InvalidValueError) error {
	switch invalid.GetFlag().Value.Type() {
	case "bool":
		return errors.New("give true or false")
	case "int":
		return errors.New("give a whole number")
	case "uint64":
		return errors.New("give a whole number, 0 or more")
	}
	return invalid.Unwrap()
}

// DurationFlag adds a flag that takes seconds, or a duration with its unit.
func DurationFlag(flags *pflag.FlagSet, into *time.Duration, name, usage string) {
	flags.Func(name, usage, func(text string) (err error) {
		*into, err = ParseDuration(text)
		return err
	})
}

var errDuration = errors.New("give seconds, or a duration such as 500ms or 1h")

// ParseDuration reads seconds, or a duration with its unit. Seconds beyond the bounds of a Duration become the bound.
func ParseDuration(text string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		switch nanoseconds := seconds * float64(time.Second); {
		case math.IsNaN(seconds):
			return 0, errDuration
		case nanoseconds >= math.MaxInt64:
			return math.MaxInt64, nil
		case nanoseconds <= math.MinInt64:
			return math.MinInt64, nil
		default:
			return time.Duration(nanoseconds), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errDuration
	}
	return d, nil
}
