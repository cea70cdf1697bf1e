package agent

import (
	"encoding/json"
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
		Short: "Set two reports side by side, window by window: what got slower, and why",
		Long: `Sets two reports side by side, as run --report and demo --json write them: what each window took in A and in B, which
part of its time explains the difference, and what the disks did where that part is storage. Windows are matched by
what they are called, repeats by their order. Differences of less than 5 % or 10 ms are "about the same".`,
		Example: `  stallspan compare before.json after.json
  stallspan compare --fail-on slower --threshold 20% main.json branch.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return errors.New("compare needs two reports: stallspan compare A.json B.json")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("threshold") && o.failOn == "" {
				return errors.New("--threshold is for --fail-on slower: give both")
			}
			return o.run(cmd.OutOrStdout(), args[0], args[1])
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.asJSON, "json", false, "print the comparison as JSON")
	flags.StringVar(&o.failOn, "fail-on", "", "exit with code 3 when a window got `slower`")
	flags.StringVar(&o.threshold, "threshold", "10%", "how much longer is slower, for --fail-on, as a `percentage`")
	return cmd
}

func (o *compareOptions) run(out io.Writer, pathA, pathB string) error {
	if o.failOn != "" && o.failOn != "slower" {
		return fmt.Errorf("--fail-on %s: the only choice is slower", o.failOn)
	}
	threshold, err := parsePercentage(o.threshold)
	if err != nil {
		return err
	}
	a, err := readDocument(pathA)
	if err != nil {
		return failure{exitFailed, err}
	}
	b, err := readDocument(pathB)
	if err != nil {
		return failure{exitFailed, err}
	}
	c := compare.Compare(a, b)
	if err := o.show(out, pathA, pathB, c); err != nil {
		return failure{exitFailed, fmt.Errorf("the comparison cannot be written: %w", err)}
	}
	if o.failOn == "" {
		return nil
	}
	return outcome(c, threshold)
}

func (o *compareOptions) show(out io.Writer, pathA, pathB string, c *compare.Comparison) error {
	if !o.asJSON {
		printComparison(out, pathA, pathB, c)
		return nil
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false) // "->" is for people
	return encoder.Encode(c)
}

// outcome is what --fail-on slower makes of a comparison. One that has nothing to compare must not pass in silence.
func outcome(c *compare.Comparison, threshold float64) error {
	if !c.Judged() {
		return failure{exitFailed, errors.New("--fail-on slower: no window is whole in both reports, so nothing can be said")}
	}
	slower := c.SlowerBy(threshold)
	if len(slower) == 0 {
		return nil
	}
	const most = 5
	var list []string
	for _, p := range slower[:min(most, len(slower))] {
		list = append(list, printable(p.Label))
	}
	more := ""
	if n := len(slower) - most; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return failure{exitSlow, fmt.Errorf("slower by more than %.4g %%: %s%s", threshold*100, strings.Join(list, ", "), more)}
}

// parsePercentage reads "10%". Without the sign, 0.1 would be taken for one thing and mean another.
func parsePercentage(text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(value >= 0 && value <= 1e6) {
		return 0, fmt.Errorf("--threshold %s: give a percentage such as 10%%", text)
	}
	return value / 100, nil
}

func readDocument(path string) (*compare.Document, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read, name a report that run --report has written: %w", path, reason(err))
	}
	defer func() { _ = file.Close() }()
	d, err := compare.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s is not a report as run --report writes it: %w", path, reason(err))
	}
	return d, nil
}
