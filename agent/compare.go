package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/compare"
)

// compareOptions are the flags of compare.
type compareOptions struct {
	asJSON    bool
	failOn    string
	threshold string
}

func compareCommand() *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:   "compare [flags] A.json B.json",
		Short: "Compare two reports window by window: what got slower, and why",
		Long: `Compares two reports of --report (run, record, replay), demo --json or mark end --json: the duration
of each window in A and in B, the part of its time that explains the difference, and the disks' work
if that part is storage. Windows are matched by kind and name, repeats by their order. Differences
below 5 % or 10 ms are "about the same".`,
		Example: `  stallspan compare before.json after.json
  stallspan compare --fail-on slower --threshold 20% main.json branch.json`,
		Args: needs(2, 2, "compare needs two reports: stallspan compare A.json B.json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("threshold") && o.failOn == "" {
				o.failOn = "slower" // what else a threshold could be for
			}
			return o.run(cmd.OutOrStdout(), args[0], args[1])
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.asJSON, "json", false, "print the comparison as JSON")
	flags.StringVar(&o.failOn, "fail-on", "", "exit with code 3 if a window got `slower`")
	flags.StringVar(&o.threshold, "threshold", "10%", "the `percentage` above which a window counts as slower")
	return cmd
}

func (o *compareOptions) run(out io.Writer, pathA, pathB string) error {
	if o.failOn != "" && o.failOn != "slower" {
		return usagef("--fail-on %q is unknown: the only choice is slower", o.failOn)
	}
	threshold, err := parsePercentage(o.threshold)
	if err != nil {
		return usage(err)
	}
	a, err := readDocument(pathA)
	if err != nil {
		return err
	}
	b, err := readDocument(pathB)
	if err != nil {
		return err
	}
	c := compare.Compare(a, b)
	if o.asJSON {
		err = writeJSON(out, c)
	} else {
		err = printComparison(out, pathA, pathB, c)
	}
	if err != nil || o.failOn == "" {
		return printed(err)
	}
	return outcome(c, threshold)
}

// outcome is the result of --fail-on slower. Reports without a common window must not pass in silence.
func outcome(c *compare.Comparison, threshold float64) error {
	if !c.Judged() {
		return errors.New("--fail-on slower: no window is complete in both reports, so there is nothing to compare")
	}
	slower := c.SlowerBy(threshold)
	if len(slower) == 0 {
		return nil
	}
	var names []string
	for _, p := range slower {
		names = append(names, printable(p.Label))
	}
	return exitError{exitSlow, fmt.Errorf("slower by more than %.4g %%: %s", threshold*100, firstOf(names, 5))}
}

// firstOf lists the first names, with the number of the others.
func firstOf(names []string, limit int) string {
	if more := len(names) - limit; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), more)
	}
	return strings.Join(names, ", ")
}

// parsePercentage reads "10%". The sign is required: 0.1 could mean a tenth of a percent, or a tenth.
func parsePercentage(text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(value >= 0 && value <= 1e6) {
		return 0, fmt.Errorf("--threshold %q: give a percentage such as 10%%", text)
	}
	return value / 100, nil
}

func readDocument(path string) (*compare.Document, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read, give a report of run --report: %w", path, reason(err))
	}
	defer func() { _ = file.Close() }()
	d, err := compare.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s is not a report of run --report: %w", path, reason(err))
	}
	return d, nil
}
