// Package health is the command health: it shows the state of the drives.
package health

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/agentconfig"
	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/reports"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/state/drives"
)

const maxSaved = 4<<20 + 1 // bytes of a saved answer of smartctl, and one more to detect a longer one

// options are the flags of health.
type options struct {
	json     bool
	brief    bool
	from     []string // files with smartctl's JSON, "-" for standard input
	config   string   // the agent's, for its settings of disks
	file     string   // the baselines; the history is in the same folder
	smartctl string
	sudo     bool
	kind     string // of the only device
	forget   string
	live     bool
}

// Command is stallspan health.
func Command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "health [--json] [--from FILE] [DEVICE...]",
		Short: "Show the disks' health: worst first, with the finding and what to do",
		Long: `Reads the health of this machine's disks with smartctl (smartmontools 7.0 or later), and wakes none
that sleeps. Shows them worst first. The growth of errors comes from the history that an agent
keeps. With --from it reads the saved output of smartctl --json.

With --live it looks at no disk, but whether this machine's agent still reads: the probe for a
container's liveness.`,
		Example: `  sudo stallspan health
  stallspan health --json nvme0n1
  smartctl --json -a /dev/sda > sda.json; stallspan health --from sda.json`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cli.CompleteWords(cli.WholeDisks),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(args); err != nil {
				return cli.Usage(err)
			}
			if o.live {
				return checkAgent(cmd.Context())
			}
			if o.forget != "" {
				return o.forgetDisk(cmd.OutOrStdout())
			}
			all, err := o.disks(cmd.Context(), cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			draw := func(t *output.Table) { drawHealth(t, all, o.brief) }
			return cmp.Or(output.Print(cmd.OutOrStdout(), o.json, reportOf(all), draw), exitCode(all))
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	f.BoolVar(&o.brief, "brief", false, "print one line for each disk, without what was found and what to do")
	f.StringArrayVar(&o.from, "from", nil, "read saved output of smartctl --json from this `file`; - is standard input")
	f.StringVar(&o.config, "config", "", "use the settings of an agent's config `file` (stallspan docs agent)")
	f.StringVar(&o.file, "file", "", "the `file` of baselines; the disks' history is in its folder\n(default: the one of stallspan run)")
	f.StringVar(&o.smartctl, "smartctl", "", "the `path` of smartctl")
	f.BoolVar(&o.sudo, "sudo", false, "run smartctl with sudo")
	f.StringVar(&o.kind, "type", "", "the `type` of the only DEVICE, as in smartctl --device: sat, megaraid,0")
	f.StringVar(&o.forget, "forget", "", "forget a disk that was removed on purpose: its `ID`, serial number or device")
	f.BoolVar(&o.live, "live", false, "fail if the agent does not answer, or has read nothing for 30 seconds")
	return cmd
}

func (o *options) check(args []string) error {
	switch {
	case o.live && (len(args) > 0 || len(o.from) > 0 || o.forget != ""):
		return errors.New("health --live looks at the agent and no disk: leave out DEVICE, --from and --forget")
	case len(o.from) > 0 && (len(args) > 0 || o.sudo || o.smartctl != "" || o.kind != "" || o.config != ""):
		return errors.New("health --from reads a file and no disk: leave out DEVICE, --type, --smartctl, --sudo and --config")
	case o.forget != "" && (len(args) > 0 || len(o.from) > 0):
		return errors.New("health --forget takes the disk as its value: leave out DEVICE and --from")
	case o.kind != "" && len(args) != 1:
		return errors.New("health --type applies to one disk: give one DEVICE")
	}
	return nil
}

// disks returns the chosen disks with their verdicts, the worst first.
func (o *options) disks(ctx context.Context, in io.Reader, args []string) ([]drives.Drive, error) {
	if len(o.from) > 0 {
		return savedDisks(in, o.from)
	}
	options, err := o.options()
	if err != nil {
		return nil, err
	}
	var chosen []string
	if len(args) > 0 {
		options.Disks = nil
	}
	for _, arg := range args {
		disk, err := drives.ParseDisk(arg, o.kind)
		if err != nil {
			return nil, cli.Usage(err)
		}
		options.Disks = append(options.Disks, disk)
		chosen = append(chosen, disk.Device)
	}
	options.Only = len(chosen) > 0
	all, problem, err := drives.ReadAll(ctx, options)
	switch {
	case err != nil:
		return nil, cli.Usage(err)
	case ctx.Err() != nil:
		return nil, errors.New("interrupted")
	case problem != nil && (problem.Missing || len(all) == 0):
		return nil, problem.Why
	}
	listed := options.Listing()
	if listed.Err != nil {
		cli.Say("%v", listed.Err)
	}
	all = o.openHistory().Assess(all, listed, time.Now())
	if len(all) == 0 {
		cli.Say("%v", drives.NoDisk())
	}
	return all, nil
}

// options combines the flags with the config.
func (o *options) options() (drives.Options, error) {
	c, err := agentconfig.Read(o.config)
	if err != nil {
		return drives.Options{}, cli.Usage(err)
	}
	options := c.Smart.Options()
	options.Root = c.Sampling.RootPath
	options.Smartctl = cmp.Or(o.smartctl, options.Smartctl)
	options.Sudo = options.Sudo || o.sudo
	if o.file == "" && c.NoBaseline == nil {
		o.file = cmp.Or(c.Slow.Baseline, config.Off)
	}
	return options, nil
}

// openHistory opens the history for reading.
func (o *options) openHistory() *drives.History {
	path, err := o.history()
	var h *drives.History
	if err == nil {
		h, err = drives.Read(path, drives.Boot(""))
	}
	if err != nil {
		cli.Say("%v", err)
	}
	return h
}

// history is the path of the disks' history, "" for none.
func (o *options) history() (string, error) {
	path, err := cli.BaselineFile(o.file, "--file")
	return drives.DefaultPath(path), err
}

// forgetDisk removes a disk from the history.
func (o *options) forgetDisk(out io.Writer) error {
	if _, err := o.options(); err != nil {
		return err
	}
	path, err := o.history()
	if err != nil {
		return err
	}
	if path == "" {
		return cli.Usagef("--file off is not a file: leave it out for the default one")
	}
	gone, err := drives.Forget(path, o.forget)
	for i := range gone {
		d := &gone[i]
		line := fmt.Sprintf("forgot %s: %s, serial %s, was %s", d.ID, d.Model, d.Serial, d.Device)
		if _, err := fmt.Fprintln(out, output.Printable(line)); err != nil {
			return output.Printed(err)
		}
	}
	return err
}

// savedDisks reads saved answers of smartctl.
func savedDisks(in io.Reader, files []string) ([]drives.Drive, error) {
	var all []drives.Drive
	for _, file := range files {
		text, where, err := saved(in, file)
		if err != nil {
			return nil, err
		}
		d, err := drives.Parse(text, where)
		if err != nil {
			return nil, err
		}
		if file != "-" {
			d.File = file
		}
		all = append(all, d)
	}
	drives.Sort(all)
	return all, nil
}

func saved(in io.Reader, file string) (text []byte, where string, err error) {
	where = "the standard input"
	if file != "-" {
		where = strconv.Quote(file)
		var f *os.File
		if f, err = os.Open(file); err == nil {
			defer func() { _ = f.Close() }()
			in = f
		}
	}
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(in, maxSaved))
	}
	if err != nil {
		err = fmt.Errorf("%s cannot be read: %w", where, reports.Reason(err)) // where has the name, quoted
	}
	return text, where, err
}

// exitCode is the exit code for the disks' states.
func exitCode(all []drives.Drive) error {
	if slices.ContainsFunc(all, func(d drives.Drive) bool { return drives.NeedsAction(d.Status) }) {
		return cli.ExitError{Code: cli.ExitFailing}
	}
	if len(all) > 0 && !slices.ContainsFunc(all, func(d drives.Drive) bool { return !drives.Unread(d.Status) }) {
		return cli.ExitError{Code: cli.ExitFailed}
	}
	return nil
}

// report is the output of health --json.
type report struct {
	Disks []drives.Report `json:"disks"` // the worst first
}

func reportOf(all []drives.Drive) report {
	r := report{Disks: make([]drives.Report, 0, len(all))}
	for i := range all {
		r.Disks = append(r.Disks, drives.ReportOf(&all[i]))
	}
	return r
}

const (
	liveAnswer = 5 * time.Second  // until the agent must have answered
	liveRound  = 30 * time.Second // until it must have read all of its sources
)

// checkAgent fails if the agent of this machine does not answer, or no longer reads.
func checkAgent(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, liveAnswer)
	defer cancel()
	status, err := api.NewClient(api.DefaultSocket()).Status(ctx)
	if err != nil {
		return err
	}
	if age := time.Duration(status.LastRound * float64(time.Second)); age > liveRound {
		return cli.ExitError{Code: cli.ExitFailing,
			Err: fmt.Errorf("the agent has read nothing for %v: a source hangs, restart it", age.Round(time.Second))}
	}
	return nil
}
