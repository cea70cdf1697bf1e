package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/internal/baseline"
	"github.com/stallspan/stallspan/internal/window"
)

func baselineCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "baseline",
		Short: "What loads and epochs usually take here, by which later ones count as slow",
		Long: `Shows and resets what was learned of how long model loads and the epochs of runs take on this machine. From the fifth
one on, a later one that takes over 1.5 times as long as 95 of 100 do is slow. Those that are slow are not learned from.`,
		Example: `  stallspan baseline list
  stallspan baseline reset train.py`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q is no command of baseline: see stallspan baseline --help", args[0])
			}
			return cmd.Help()
		},
	}
	cmd.PersistentFlags().StringVar(&file, "file", "", "the `file` of baselines (default: the one that stallspan run uses)")
	cmd.AddCommand(baselineListCommand(&file), baselineShowCommand(&file), baselineResetCommand(&file))
	return cmd
}

// chosen is the file that a command is about.
func chosen(file string) (string, error) {
	asked := &file
	if file == "" {
		asked = nil
	}
	path, err := baselineFile(asked, "--file")
	switch {
	case err != nil:
		return "", failure{exitFailed, err}
	case path == "":
		return "", errors.New("--file off names no file: leave it out for the usual one")
	}
	return path, nil
}

func baselineListCommand(file *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [--json]",
		Short: "List all that is known, a row for each model and device and for each run",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, all, err := learned(*file)
			if err != nil {
				return err
			}
			if asJSON {
				return printed(printBaselinesJSON(cmd.OutOrStdout(), path, all))
			}
			if len(all) == 0 {
				say("nothing has been learned yet in %s", path)
			}
			return printed(printBaselines(cmd.OutOrStdout(), all, time.Now()))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func baselineShowCommand(file *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show KEY|NAME",
		Short: "Show what is known of one: all of its last 64 durations",
		Args:  oneBaseline("show"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, all, err := learned(*file)
			if err != nil {
				return err
			}
			found := baseline.Find(all, args[0])
			if len(found) == 0 {
				return failure{exitFailed, notKnown(args[0], path)}
			}
			if asJSON {
				return printed(printBaselinesJSON(cmd.OutOrStdout(), path, found))
			}
			return printed(showBaselines(cmd.OutOrStdout(), found))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func baselineResetCommand(file *string) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "reset KEY|NAME | --all",
		Short: "Forget what is known of one or of all, as after new hardware, and say what that was",
		Args: func(cmd *cobra.Command, args []string) error {
			if all && len(args) == 0 {
				return nil
			}
			if all {
				return errors.New("baseline reset takes a name or --all, and was given both")
			}
			return oneBaseline("reset")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := chosen(*file)
			if err != nil {
				return err
			}
			gone, err := baseline.Reset(path, func(e baseline.Entry) bool { return all || e.Matches(args[0]) })
			switch {
			case err != nil:
				return failure{exitFailed, err}
			case len(gone) == 0 && !all:
				return failure{exitFailed, notKnown(args[0], path)}
			case len(gone) == 0:
				say("nothing has been learned yet in %s", path)
			}
			for _, e := range gone {
				line := fmt.Sprintf("forgot %s: %d that took %s, p95 %s", e.Key, len(e.Durations),
					window.Short(e.Median().Seconds()), window.Short(e.P95().Seconds()))
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), printable(line)); err != nil {
					return printed(err)
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "forget everything")
	return cmd
}

func oneBaseline(command string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return fmt.Errorf("baseline %s needs one key, model or run: stallspan baseline list shows them", command)
		}
		return nil
	}
}

func notKnown(text, path string) error {
	return fmt.Errorf("nothing is known of %q in %s: stallspan baseline list shows what is", text, path)
}

func learned(file string) (path string, all []baseline.Entry, err error) {
	if path, err = chosen(file); err != nil {
		return "", nil, err
	}
	if all, err = baseline.List(path); err != nil {
		return "", nil, failure{exitFailed, err}
	}
	return path, all, nil
}

func printed(err error) error {
	if err != nil {
		return failure{exitFailed, err}
	}
	return nil
}

// baselineJSON is one of them in JSON. Times are seconds; what too few windows tell is absent.
type baselineJSON struct {
	Key         string    `json:"key"`
	Kind        string    `json:"kind"` // load or epoch
	Name        string    `json:"name"`
	Device      string    `json:"device,omitempty"`
	Temperature string    `json:"temperature,omitempty"`
	Count       int       `json:"count"`
	Median      float64   `json:"median_s"`
	P95         float64   `json:"p95_s"`
	SlowAbove   *float64  `json:"slow_above_s,omitempty"`
	SlowInARow  int       `json:"slow_in_a_row"`
	Seen        time.Time `json:"last_seen"`
	Took        []float64 `json:"took_s"`
}

func printBaselinesJSON(out io.Writer, path string, all []baseline.Entry) error {
	list := make([]baselineJSON, 0, len(all))
	for i := range all {
		e := &all[i]
		j := baselineJSON{
			Key: string(e.Key), Kind: e.Key.Kind(), Name: e.Key.Name(), Device: e.Key.Device(),
			Temperature: string(e.Key.Temperature()), Count: len(e.Durations), Median: e.Median().Seconds(), P95: e.P95().Seconds(),
			SlowInARow: e.Slow, Seen: e.Last, Took: make([]float64, 0, len(e.Durations)),
		}
		if limit, known := slowAbove(e); known {
			seconds := limit.Seconds()
			j.SlowAbove = &seconds
		}
		for _, took := range e.Durations {
			j.Took = append(j.Took, took.Seconds())
		}
		list = append(list, j)
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		File      string         `json:"file"`
		Baselines []baselineJSON `json:"baselines"`
	}{path, list})
}

// slowAbove is from which duration on one is slow, with the usual factor.
func slowAbove(e *baseline.Entry) (time.Duration, bool) {
	usual, known := e.Baseline()
	return usual.Limit(0), known
}
