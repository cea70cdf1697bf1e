package stat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
)

// options are the flags of stat. Short ones are those of iostat.
type options struct {
	json, summary, wide bool
	onlyDisks, skipIdle bool
	units               byteUnits
}

const (
	minInterval = config.DefaultInterval // shorter ones would end between two samples
	maxInterval = 24 * time.Hour         // the kernel's times of a disk with a deep queue wrap in about a day
)

// allDisks is the DEVICE that stands for all.
const allDisks = "ALL"

// Command is stallspan stat.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "stat [flags] [DEVICE...] [INTERVAL [COUNT]]",
		Short: "Show GPUs and disks next to each other",
		Long: `Shows the columns of iostat -x for disks and those of nvidia-smi for GPUs, over the same
intervals, with the machine's I/O pressure and its busiest core. INTERVAL is in seconds (default 1),
or a duration such as 500ms. COUNT is the number of intervals (default: until ^C). No number is
since boot. A device marked * is a part of others or made of them: do not add it up.

DEVICE chooses disks; ALL is every one. Without it, the table leaves out devices marked * until they
have had I/O. -d, -h, -k, -m, -x, -y and -z mean the same as in iostat.`,
		Example: `  stallspan stat
  stallspan stat -xz nvme0n1 sda 5 12
  stallspan stat --json 0.5 > load.jsonl`,
		ValidArgsFunction: cli.CompleteWords(func() []string { return append(cli.DiskNames(), allDisks) }),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := o.prepare(args)
			if err != nil {
				return cli.Usage(err)
			}
			s.out = cmd.OutOrStdout()
			return s.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.Bool("help", false, "help for stat") // -h is iostat's
	flags.BoolVar(&o.json, "json", false, "print one JSON object for each interval")
	flags.BoolVar(&o.summary, "summary", false, "print only min, mean, 95th percentile and max of each device, at the end")
	flags.BoolVarP(&o.wide, "wide", "x", false, "show all columns, also on a narrow terminal")
	flags.BoolVarP(&o.onlyDisks, "disks", "d", false, "show disks only")
	flags.BoolVarP(&o.skipIdle, "skip-idle", "z", false, "leave out disks that were idle in the interval")
	flags.BoolP("kilobytes", "k", false, "print kB/s (default)")
	flags.BoolVarP(&o.units.mega, "megabytes", "m", false, "print MB/s in place of kB/s")
	flags.BoolVarP(&o.units.human, "human", "h", false, "print sizes as 1.5k, 20.0M or 3.1G")
	flags.BoolP("skip-first", "y", false, "no effect: no report is since boot")
	cmd.MarkFlagsMutuallyExclusive("megabytes", "kilobytes")
	cmd.SetFlagErrorFunc(explainFlag)
	return cmd
}

// explainFlag explains a negative number, which is parsed as a flag.
func explainFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if short := unknown.GetSpecifiedShortnames(); short != "" && strings.ContainsAny(short[:1], "0123456789.") {
			return fmt.Errorf("INTERVAL \"-%s\": choose %v to %v", short, minInterval, maxInterval)
		}
	}
	return cli.FlagError(cmd, err)
}

// prepare checks the command line. Its errors concern that.
func (o *options) prepare(args []string) (*printer, error) {
	if o.json && o.summary {
		return nil, errors.New("--json and --summary: choose one of them")
	}
	a, err := parseArguments(args)
	if err != nil {
		return nil, err
	}
	s := &printer{interval: a.interval, count: a.count,
		choice: choice{names: a.devices, all: a.all, skipIdle: o.skipIdle, onlyDisks: o.onlyDisks}}
	switch {
	case o.json:
		s.print = printJSON
	case o.summary:
		s.totals = &summary{}
		s.print = s.totals.print
	default:
		s.choice.table = true
		s.print = (&liveTable{wide: o.wide, units: o.units, terminal: os.Stdout, fine: a.interval%time.Second != 0}).print
	}
	return s, nil
}

// arguments are the arguments of stat.
type arguments struct {
	devices  []string
	all      bool // ALL, as in iostat
	interval time.Duration
	count    int // 0 for without end
}

// parseArguments parses devices, INTERVAL and COUNT. What begins like a number is one: no disk's name does.
func parseArguments(args []string) (a arguments, err error) {
	a.interval = time.Second
	numbers := 0
	for _, arg := range args {
		isNumber := arg == "" || strings.ContainsAny(arg[:1], "0123456789.+-")
		switch {
		case !isNumber && arg == allDisks:
			a.all = true
		case !isNumber:
			a.devices = append(a.devices, diskNamed(arg))
		case numbers == 0:
			a.interval, err = parseInterval(arg)
			numbers++
		case numbers == 1:
			if a.count, err = strconv.Atoi(arg); err != nil || a.count < 1 {
				err = fmt.Errorf("COUNT %q: give a whole number, 1 or more", arg)
			}
			numbers++
		default:
			err = fmt.Errorf("unexpected argument %q: stallspan stat [DEVICE...] [INTERVAL [COUNT]]", arg)
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

// diskNamed is the kernel's name of a disk that is given by its name or by a path, such as one in /dev/disk/by-id.
func diskNamed(text string) string {
	if !strings.Contains(text, "/") {
		return text
	}
	if target, err := filepath.EvalSymlinks(text); err == nil {
		text = target
	}
	return filepath.Base(text)
}

func parseInterval(text string) (time.Duration, error) {
	interval, err := cli.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("INTERVAL %q: %w", text, err)
	}
	if interval < minInterval || interval > maxInterval {
		return 0, fmt.Errorf("INTERVAL %q: choose %v to %v", text, minInterval, maxInterval)
	}
	return interval, nil
}

// printer prints the intervals of one machine until its count is reached, ctx ends, or the reader closes the output.
type printer struct {
	out      io.Writer
	interval time.Duration
	count    int // 0 for without end
	choice   choice
	print    func(to *bytes.Buffer, r *Rates) error
	totals   *summary // nil without --summary

	shown   int
	warned  int             // problems that were printed
	inexact map[string]bool // disks whose utilization was explained
}

func (s *printer) run(ctx context.Context) error {
	m, err := monitor.New(monitor.Config{})
	if err != nil {
		return err
	}
	m.Start()
	defer m.Stop()
	readAll(m)
	before := m.Collect()
	pace := time.NewTicker(s.interval) // an interval that has passed, as after the machine slept, is skipped
	defer pace.Stop()
	if missing := s.choice.missing(before.Disks.Disks); missing != "" {
		return cli.Usagef("there is no disk %q: lsblk lists them; INTERVAL is in seconds, or a duration such as 500ms",
			missing)
	}
	if s.interval > time.Second && output.ScreenFor(s.out, output.Never).Terminal() {
		cli.Say("the first numbers follow in %v; stop with ^C", s.interval)
	}
	for more := true; more; {
		select {
		case <-ctx.Done():
			return s.finish()
		case <-pace.C:
		}
		readAll(m)
		after := m.Collect()
		s.problems(m)
		if more, err = s.show(&before, &after); err != nil {
			return err
		}
		before = after
	}
	return s.finish()
}

// show prints one interval. more is false after the last one.
func (s *printer) show(before, after *sample.Snapshot) (more bool, err error) {
	r := Between(before, after)
	s.choice.apply(&r)
	s.explain(r.Disks)
	var text bytes.Buffer
	if err := s.print(&text, &r); err != nil {
		return false, err
	}
	// One write for each interval: a reader gets it whole.
	if _, err := s.out.Write(text.Bytes()); errors.Is(err, syscall.EPIPE) {
		return false, nil // as after "| head"
	} else if err != nil {
		return false, output.Printed(err)
	}
	s.shown++
	return s.count == 0 || s.shown < s.count, nil
}

// finish prints the summary, if one is wanted.
func (s *printer) finish() error {
	if s.totals == nil {
		return nil
	}
	return output.Printed(output.WriteTable(s.out, s.totals.draw))
}

// readAll reads all sources, and waits for late readings of the GPUs.
func readAll(m *monitor.Monitor) {
	m.CatchUp()
	m.Tick()
}

// explain names once each disk whose time with work cannot be true.
func (s *printer) explain(disks []Disk) {
	for i := range disks {
		d := &disks[i]
		if !d.Inexact || !d.Leaf || s.inexact[d.Name] || len(s.inexact) >= maxTotals {
			continue
		}
		if s.inexact == nil {
			s.inexact = map[string]bool{}
		}
		s.inexact[d.Name] = true
		cli.Say("%s: the kernel counts more time with work (io_ticks) than the operations took: "+
			"%%util is at most their time, aqu-sz", output.Printable(d.Name))
	}
}

// problems prints each problem once.
func (s *printer) problems(m *monitor.Monitor) {
	list := m.Problems()
	for _, p := range list[s.warned:] {
		cli.Warn(p)
	}
	s.warned = len(list)
}

// choice is the devices that stat shows.
type choice struct {
	names     []string // of disks; nil for all
	all       bool     // ALL
	skipIdle  bool     // -z
	onlyDisks bool     // -d
	table     bool     // the output is for a person: stacked devices show from their first I/O on

	active map[string]bool // stacked devices that had I/O
}

// missing returns the first name that is not among the disks, or "".
func (c *choice) missing(disks []sample.Disk) string {
	for _, name := range c.names {
		if !slices.ContainsFunc(disks, func(d sample.Disk) bool { return d.Name == name }) {
			return name
		}
	}
	return ""
}

// apply removes what is not shown.
func (c *choice) apply(r *Rates) {
	if c.onlyDisks {
		r.GPUs = nil
	}
	r.Disks = slices.DeleteFunc(r.Disks, func(d Disk) bool { return !c.shows(&d) })
}

func (c *choice) shows(d *Disk) bool {
	idle := d.Idle()
	switch {
	case len(c.names) > 0 && !c.all && !slices.Contains(c.names, d.Name), c.skipIdle && idle:
		return false
	case !c.table || d.Leaf || c.all || len(c.names) > 0:
		return true
	}
	if !idle {
		if c.active == nil {
			c.active = map[string]bool{}
		}
		c.active[d.Name] = true // as many as the machine has devices
	}
	return c.active[d.Name]
}
