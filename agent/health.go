package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/internal/baseline"
	"github.com/stallspan/stallspan/internal/drives"
)

const (
	exitFailing = 3         // of health: a disk is failing, has failed or vanished
	mostSaved   = 4<<20 + 1 // of a saved answer of smartctl's, and one byte to see that there is more
)

// healthOptions are the flags of health.
type healthOptions struct {
	json     bool
	from     []string // files with smartctl's JSON, "-" for standard input
	config   string   // the agent's, for what it says of disks
	file     string   // the baselines, beside which the history lies
	smartctl string
	sudo     bool
	kind     string // of the one device that is named
	forget   string
}

func healthCommand() *cobra.Command {
	var o healthOptions
	cmd := &cobra.Command{
		Use:   "health [--json] [--from FILE] [DEVICE...]",
		Short: "Say how the disks are: worst first, with what was found and what to do",
		Long: `Asks the machine's disks for their health by way of smartctl (smartmontools 7.0 or later), wakes none that sleeps, and
says of each how it is, worst first. How fast its errors grow it knows from the history that an agent keeps. With --from it
reads what smartctl --json has printed elsewhere.`,
		Example: `  sudo stallspan health
  stallspan health --json nvme0n1
  smartctl --json -a /dev/sda > sda.json; stallspan health --from sda.json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(args); err != nil {
				return err
			}
			if o.forget != "" {
				return o.forgets(cmd.OutOrStdout())
			}
			all, err := o.disks(cmd.Context(), cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			write := printHealth
			if o.json {
				write = printHealthJSON
			}
			if err := write(cmd.OutOrStdout(), all); err != nil {
				return failure{exitFailed, err}
			}
			return healthExit(all)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.json, "json", false, "print one JSON object")
	f.StringArrayVar(&o.from, "from", nil, "read a saved `file` of smartctl --json instead of asking; - is the standard input")
	f.StringVar(&o.config, "config", "", "ask as an agent with this config `file` does (docs/agent.md)")
	f.StringVar(&o.file, "file", "", "the `file` of baselines beside which the disks' history lies (default: the one that stallspan run uses)")
	f.StringVar(&o.smartctl, "smartctl", "", "the `path` of smartctl")
	f.BoolVar(&o.sudo, "sudo", false, "have sudo run smartctl")
	f.StringVar(&o.kind, "type", "", "the `type` of the one DEVICE that is named, as smartctl's --device: sat, megaraid,0")
	f.StringVar(&o.forget, "forget", "", "forget a disk that was taken out on purpose: its `ID`, serial number or device")
	return cmd
}

func (o *healthOptions) check(args []string) error {
	switch {
	case len(o.from) > 0 && (len(args) > 0 || o.sudo || o.smartctl != "" || o.kind != "" || o.config != ""):
		return errors.New("health --from reads a file and asks no disk: give no DEVICE, --type, --smartctl, --sudo or --config beside it")
	case o.forget != "" && (len(args) > 0 || len(o.from) > 0):
		return errors.New("health --forget takes the disk as its own value, and nothing beside it")
	case o.kind != "" && len(args) != 1:
		return errors.New("health --type is of one disk: name it")
	}
	return nil
}

// disks are those that were asked for, judged, the worst first.
func (o *healthOptions) disks(ctx context.Context, in io.Reader, args []string) ([]drives.Drive, error) {
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
		disk, err := drives.Chosen(arg, o.kind)
		if err != nil {
			return nil, err
		}
		options.Disks = append(options.Disks, disk)
		chosen = append(chosen, disk.Device)
	}
	options.Only = len(chosen) > 0
	all, problem, err := drives.Ask(ctx, options)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, failure{exitFailed, errors.New("interrupted")}
	case problem != nil && (problem.Missing || len(all) == 0):
		return nil, failure{exitFailed, problem.Why}
	}
	listed := options.Listing()
	if listed.Err != nil {
		say("%v", listed.Err)
	}
	all = o.book().Look(all, listed, time.Now())
	if len(all) == 0 {
		say("%v", drives.NoDisk())
	}
	return all, nil
}

// options are those of the flags, on top of those of a config.
func (o *healthOptions) options() (drives.Options, error) {
	c, err := readConfig(o.config)
	if err != nil {
		return drives.Options{}, failure{exitUsage, err}
	}
	options := drives.Options{
		Root: c.Sampling.RootPath, Smartctl: cmp.Or(o.smartctl, c.Smart.smartctl), Sudo: o.sudo || c.Smart.sudo, Disks: c.Smart.disks,
	}
	if o.file == "" && c.Slow.baseline != nil {
		o.file = cmp.Or(*c.Slow.baseline, baseline.Off)
	}
	return options, nil
}

// book is the history, to be looked at.
func (o *healthOptions) book() *drives.Book {
	path, err := o.history()
	var book *drives.Book
	if err == nil {
		book, err = drives.Read(path, drives.Boot(""))
	}
	if err != nil {
		say("%v", err)
	}
	return book
}

// history is the file's path, "" for none.
func (o *healthOptions) history() (string, error) {
	asked := &o.file
	if o.file == "" {
		asked = nil
	}
	path, err := baselineFile(asked, "--file")
	return drives.DefaultPath(path), err
}

func (o *healthOptions) forgets(out io.Writer) error {
	if _, err := o.options(); err != nil {
		return err
	}
	path, err := o.history()
	if err != nil {
		return failure{exitFailed, err}
	}
	if path == "" {
		return errors.New("--file off names no file: leave it out for the usual one")
	}
	gone, err := drives.Forget(path, o.forget)
	for i := range gone {
		d := &gone[i]
		line := fmt.Sprintf("forgot %s: %s, serial %s, was %s", d.ID, d.Model, d.Serial, d.Device)
		if _, err := fmt.Fprintln(out, printable(line)); err != nil {
			return printed(err)
		}
	}
	return printed(err)
}

// savedDisks are those of saved answers of smartctl.
func savedDisks(in io.Reader, files []string) ([]drives.Drive, error) {
	var all []drives.Drive
	for _, file := range files {
		text, where, err := saved(in, file)
		if err != nil {
			return nil, failure{exitFailed, err}
		}
		d, err := drives.FromJSON(text, where)
		if err != nil {
			return nil, failure{exitFailed, err}
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
		f, err := os.Open(file)
		if err != nil {
			return nil, where, unreadable(where, err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	text, err = io.ReadAll(io.LimitReader(in, mostSaved))
	if err != nil {
		err = unreadable(where, err)
	}
	return text, where, err
}

// unreadable names a file as where does: the name in the error itself is not quoted.
func unreadable(where string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("%s cannot be read: %w", where, err)
}

// healthExit is the exit code that the disks' states lead to.
func healthExit(all []drives.Drive) error {
	if slices.ContainsFunc(all, func(d drives.Drive) bool { return drives.Bad(d.Status) }) {
		return exit(exitFailing)
	}
	if len(all) > 0 && !slices.ContainsFunc(all, func(d drives.Drive) bool { return !drives.Unread(d.Status) }) {
		return exit(exitFailed)
	}
	return nil
}

// healthReport is what health --json prints.
type healthReport struct {
	Disks []drives.Report `json:"disks"` // the worst first
}

func printHealthJSON(out io.Writer, all []drives.Drive) error {
	report := healthReport{Disks: make([]drives.Report, 0, len(all))}
	for i := range all {
		report.Disks = append(report.Disks, drives.ReportOf(&all[i]))
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}
