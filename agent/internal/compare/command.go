package compare

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/reports"
	"github.com/stallspan/stallspan/internal/explain"
)

// options are the flags of compare.
type options struct {
	before    []string
	after     []string
	markdown  string
	html      string
	asJSON    bool
	failOn    bool
	threshold float64 // a share
}

// Command is stallspan compare.
func Command() *cobra.Command {
	o := options{threshold: 0.1}
	cmd := &cobra.Command{
		Use:   "compare [flags] [A.json B.json]",
		Short: "Compare reports window by window: what got slower, and why",
		Long: `Compares two reports of --report (run, record, replay), demo --json or mark end --json: the duration
of each window in A and in B, the part of its time that explains the difference, and the disks' work
if that part is storage. Windows are matched by kind and name, repeats by their order. Differences
below 5 % or 10 ms are "about the same".

--before and --after take several runs of each side, four or more. Then it tests whether the
medians differ by more than chance (Mann-Whitney U test), and compares the windows of the median runs.`,
		Example: `  stallspan compare before.json after.json
  stallspan compare --fail-on slower --threshold 20% main.json branch.json
  stallspan compare --before a1.json,a2.json --after b1.json,b2.json --markdown -`,
		Args: cli.Needs(0, 2, "compare needs two reports: stallspan compare A.json B.json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch several := len(o.before)+len(o.after) > 0; {
			case several && len(args) > 0:
				return cli.Usagef("%q: give all reports with --before and --after", args[0])
			case !several && len(args) != 2:
				return cli.Usagef("compare needs two reports: stallspan compare A.json B.json")
			case !several:
				o.before, o.after = args[:1], args[1:]
			case len(o.before) == 0 || len(o.after) == 0:
				return cli.Usagef("give reports with both --before and --after")
			case len(o.before) > maxCompared || len(o.after) > maxCompared:
				return cli.Usagef("give at most %d reports of each side", maxCompared)
			}
			if err := errors.Join(differ("--before", o.before), differ("--after", o.after)); err != nil {
				return cli.Usage(err)
			}
			return o.run(cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.before, "before", nil, "`reports` of several runs of A, with commas or repeated")
	flags.StringSliceVar(&o.after, "after", nil, "`reports` of several runs of B")
	flags.StringVar(&o.markdown, "markdown", "", "write the comparison as Markdown to this `file`; - for standard output")
	flags.StringVar(&o.html, "html", "", "write the comparison as one HTML `file`")
	flags.BoolVar(&o.asJSON, "json", false, "print the comparison as JSON")
	flags.Func("fail-on", "exit with code 3 if a window got `slower`", func(text string) error {
		if o.failOn = true; text != "slower" {
			return errors.New("the only choice is slower")
		}
		return nil
	})
	flags.Func("threshold", "the `percentage` above which a window counts as slower (default 10%)",
		func(text string) (err error) {
			o.failOn = true // what else a threshold could be for
			o.threshold, err = parsePercentage(text)
			return err
		})
	return cmd
}

func (o *options) run(out io.Writer) error {
	if o.asJSON && o.markdown == "-" {
		return cli.Usagef("--json and --markdown - both write to standard output: give --markdown a file")
	}
	c, runs, err := o.compare()
	if err != nil {
		return err
	}
	if err := o.print(out, c, runs); err != nil || !o.failOn {
		return err
	}
	switch {
	case runs == nil:
		return outcome(c, o.threshold)
	case runs.SlowerBy(o.threshold):
		return cli.ExitError{Code: cli.ExitSlow, Err: fmt.Errorf("slower by more than %.4g %%: %s", o.threshold*100,
			runs.Finding)}
	}
	return nil
}

// compare reads and compares the reports. runs is nil for one of each side.
func (o *options) compare() (c *Comparison, runs *Runs, err error) {
	var sides [2][]*explain.Document
	for i, paths := range [][]string{o.before, o.after} {
		for _, path := range paths {
			d, err := readDocument(path)
			if err != nil {
				return nil, nil, err
			}
			sides[i] = append(sides[i], d)
		}
	}
	if len(o.before) == 1 && len(o.after) == 1 {
		return Compare(sides[0][0], sides[1][0]), nil, nil
	}
	return Several(sides[0], sides[1])
}

// print writes the comparison to standard output, and the Markdown to its file.
func (o *options) print(out io.Writer, c *Comparison, runs *Runs) error {
	all := newComparison(output.FirstOf(o.before, maxListedRuns), output.FirstOf(o.after, maxListedRuns), c, runs)
	if o.markdown == "-" {
		_, err := io.WriteString(out, markdown(all))
		return output.Printed(err)
	}
	asMarkdown := func() ([]byte, error) { return []byte(markdown(all)), nil }
	if err := save("--markdown", o.markdown, ".md", asMarkdown); err != nil {
		return err
	}
	asHTML := func() ([]byte, error) { return comparisonHTML(all) }
	if err := save("--html", o.html, ".html", asHTML); err != nil {
		return err
	}
	return output.Print(out, o.asJSON, struct {
		Runs *Runs `json:"runs,omitempty"`
		*Comparison
	}{runs, c}, func(t *output.Table) { comparisonTable{t}.comparison(all) })
}

// save writes the file that a flag names, if it does.
func save(flag, path, extension string, write func() ([]byte, error)) error {
	file, err := reports.OpenOutput(flag, path)
	if err != nil || path == "" {
		return err
	}
	text, err := write()
	if err != nil {
		file.Discard()
		return err
	}
	return file.SaveText(text, extension)
}

// maxCompared bounds the reports of a side that are in memory.
const maxCompared = 100

// differ refuses a file that is given as several runs: that they agree would mean nothing.
func differ(flag string, paths []string) error {
	var known []os.FileInfo
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			continue // reading it says why
		}
		if slices.ContainsFunc(known, func(k os.FileInfo) bool { return os.SameFile(k, info) }) {
			return fmt.Errorf("%s has %s twice: give a report of another run", flag, path)
		}
		known = append(known, info)
	}
	return nil
}

// maxListedRuns is how many reports of a side are named.
const maxListedRuns = 3

// outcome is the result of --fail-on slower for one run of each side. Reports without a common window must not pass in
// silence.
func outcome(c *Comparison, threshold float64) error {
	if !c.Judged() {
		return errors.New("--fail-on slower: no window is complete in both reports, so there is nothing to compare")
	}
	slower := c.SlowerBy(threshold)
	if len(slower) == 0 {
		return nil
	}
	var names []string
	for _, p := range slower {
		names = append(names, output.Printable(p.Label))
	}
	return cli.ExitError{Code: cli.ExitSlow, Err: fmt.Errorf("slower by more than %.4g %%: %s", threshold*100,
		output.FirstOf(names, 5))}
}

// parsePercentage reads "10%". The sign is required: 0.1 could mean a tenth of a percent, or a tenth.
func parsePercentage(text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(value >= 0 && value <= 1e6) {
		return 0, errors.New("give a percentage such as 10%")
	}
	return value / 100, nil
}

func readDocument(path string) (*explain.Document, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read, give a report of run --report: %w", path, reports.Reason(err))
	}
	defer func() { _ = file.Close() }()
	d, err := Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s is not a report of run --report: %w", path, reports.Reason(err))
	}
	return d, nil
}
