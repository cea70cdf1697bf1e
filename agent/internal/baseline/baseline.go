// Package baseline is the command baseline: it shows and resets how long loads and epochs usually take.
package baseline

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/state/baseline"
)

// Command is stallspan baseline.
func Command() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "baseline",
		Short: "Show and reset how long loads and epochs usually take here",
		Long: `Shows and resets the usual durations of model loads and epochs on this machine. From the fifth one
on, a load or epoch is slow if it takes over 1.5 times the 95th percentile of the earlier ones. The
baselines do not learn from slow ones.`,
		Example: `  stallspan baseline list
  stallspan baseline reset train.py`,
	}
	cmd.PersistentFlags().StringVar(&file, "file", "", "the `file` of baselines (default: the one of stallspan run)")
	cli.Group(cmd, listCommand(&file), resetCommand(&file))
	return cmd
}

// fileAt returns the path of the file that --file sets.
func fileAt(file string) (string, error) {
	path, err := cli.BaselineFile(file, "--file")
	if err == nil && path == "" {
		err = cli.Usagef("--file off is not a file: leave it out for the default one")
	}
	return path, err
}

func listCommand(file *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [--json]",
		Short: "List the baselines, one row for each model and device and for each run",
		Args:  cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, all, err := learned(*file)
			if err != nil {
				return err
			}
			if len(all) == 0 && !asJSON {
				cli.Say("no baselines yet in %s", path)
			}
			return output.Print(cmd.OutOrStdout(), asJSON, reportOf(path, all),
				func(t *output.Table) { drawBaselines(t, all, time.Now()) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func resetCommand(file *string) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:               "reset KEY|NAME | --all",
		Short:             "Forget one baseline or all, for example after new hardware, and print it",
		ValidArgsFunction: cli.CompleteOneWord(func() []string { return knownNames(*file) }),
		Args: func(cmd *cobra.Command, args []string) error {
			if all && len(args) == 0 {
				return nil
			}
			if all {
				return errors.New("baseline reset takes a name or --all, not both")
			}
			return cli.Needs(1, 1, "baseline reset needs one key, model or run: stallspan baseline list shows them")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := fileAt(*file)
			if err != nil {
				return err
			}
			gone, err := baseline.Reset(path, func(e baseline.Entry) bool { return all || e.Matches(args[0]) })
			switch {
			case err != nil:
				return err
			case len(gone) == 0 && !all:
				return unknownBaseline(args[0], path)
			case len(gone) == 0:
				cli.Say("no baselines yet in %s", path)
			}
			for _, e := range gone {
				line := fmt.Sprintf("forgot %s: %d durations, median %s, p95 %s", e.Key, len(e.Durations),
					explain.Duration(e.Median().Seconds()), explain.Duration(e.P95().Seconds()))
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), output.Printable(line)); err != nil {
					return output.Printed(err)
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "forget all baselines")
	return cmd
}

func unknownBaseline(text, path string) error {
	return fmt.Errorf("no baseline %q in %s: stallspan baseline list shows them", text, path)
}

func learned(file string) (path string, all []baseline.Entry, err error) {
	if path, err = fileAt(file); err != nil {
		return "", nil, err
	}
	all, err = baseline.List(path)
	return path, all, err
}

// jsonBaseline is one baseline in JSON. Times are seconds. Values that need more windows are absent.
type jsonBaseline struct {
	Key         string    `json:"key"`
	Kind        string    `json:"kind"` // load, epoch, or first for the first epoch of a run
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

// report is what list --json prints.
type report struct {
	File      string         `json:"file"`
	Baselines []jsonBaseline `json:"baselines"`
}

func reportOf(path string, all []baseline.Entry) report {
	list := make([]jsonBaseline, 0, len(all))
	for i := range all {
		e := &all[i]
		j := jsonBaseline{
			Key: string(e.Key), Kind: e.Key.Kind(), Name: e.Key.Name(), Device: e.Key.Device(),
			Temperature: string(e.Key.Temperature()), Count: len(e.Durations),
			Median: e.Median().Seconds(), P95: e.P95().Seconds(),
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
	return report{path, list}
}

// slowAbove returns the duration above which a window is slow with the default factor.
func slowAbove(e *baseline.Entry) (time.Duration, bool) {
	usual, known := e.Baseline()
	return usual.Limit(0), known
}

// names lists the names and keys of the baselines in a file.
func knownNames(file string) (names []string) {
	_, all, err := learned(file)
	if err != nil {
		return nil
	}
	for i := range all {
		e := &all[i]
		if name := e.Key.Name(); !slices.Contains(names, name) {
			names = append(names, name)
		}
		names = append(names, fmt.Sprintf("%s\t%s, median %s", e.Key, output.Count(len(e.Durations), "duration"),
			explain.Duration(e.Median().Seconds())))
	}
	return names
}
