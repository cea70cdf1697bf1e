// Package mark is the command mark: scripts announce windows with it.
package mark

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/agent/internal/check"
	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/reports"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

// Command is stallspan mark.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mark",
		Short: "Mark from a script where a model load, an epoch or anything else begins and ends",
		Long: `Announces a window to the program that watches this machine: the stallspan run around this script,
a stallspan agent, or an OpenTelemetry Collector with the receiver stallspan. It reports where the
window's time went. STALLSPAN_SOCKET sets another socket than the default one.`,
		Example: `  stallspan mark run --kind model_load --model resnet50 -- ./load-model
  id=$(stallspan mark begin --kind epoch --epoch 3); ./train-an-epoch; stallspan mark end "$id"`,
	}
	cli.Group(cmd, beginCommand(), endCommand(), runCommand())
	return cmd
}

func beginCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "begin --kind KIND [flags]",
		Short: "Begin a window, and print its id",
		Example: `  id=$(stallspan mark begin --kind epoch --epoch 3)
  stallspan mark end "$id"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q: mark begin takes flags only, mark run runs a program", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := o.announcement(cmd)
			if err != nil {
				return cli.Usage(err)
			}
			client, err := api.FromEnvironment()
			if err != nil {
				return cli.Usage(err)
			}
			if a.PID == 0 && client.Local() {
				a.PID = os.Getppid() // this process ends at once; 0 in a container's own namespace: the API takes ours
			} else if client.Local() {
				if err := exists(a.PID); err != nil {
					return err
				}
			}
			if len(a.GPUIDs) > 0 {
				warnOfGPUs(cmd.Context(), client, a.GPUIDs)
			}
			if _, err := os.Lstat(a.Path); client.Local() && a.Path != "" && errors.Is(err, fs.ErrNotExist) {
				cli.Say("warning: --path %s does not exist yet", a.Path) // a checkpoint may create it
			}
			return begin(cmd, client, a)
		},
	}
	o.add(cmd, "the `process` that does the work (default: the calling shell)")
	return cmd
}

// noProcess is the smallest number that no process has: PID_MAX_LIMIT of 64-bit Linux. It asks for a window about the
// whole machine, as of a job that has no process yet.
const noProcess = 4 << 20

// exists returns an error if there is no such process. In a container it warns: the server may be outside, and the
// number that of the machine.
func exists(pid int) error {
	if pid >= noProcess || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return nil
	}
	if check.AllPIDs("/") {
		return fmt.Errorf("process %d does not exist: give the number of one that runs, or leave --pid out for the "+
			"calling shell", pid)
	}
	cli.Say("warning: process %d does not exist here: the report may be about the whole machine", pid)
	return nil
}

// warnOfGPUs warns if the server reads no GPU, so that it refuses none. A driver may still come.
func warnOfGPUs(ctx context.Context, client *api.Client, ids []string) {
	if status, err := client.Status(ctx); err == nil && len(status.GPUs) == 0 {
		cli.Say("warning: no GPU can be read, so the time of %s will not be divided: see stallspan check, or leave --gpu out",
			strings.Join(ids, ", "))
	}
}

func begin(cmd *cobra.Command, client *api.Client, a api.Announcement) error {
	begun, err := client.Begin(cmd.Context(), a)
	if err != nil {
		return cli.Unanswered(client, err)
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), begun.ID); err != nil {
		_, _ = client.End(cmd.Context(), begun.ID) // the id is lost, so no later call could end it
		return fmt.Errorf("the window's id cannot be printed: %w", err)
	}
	return nil
}

func endCommand() *cobra.Command {
	var asJSON, failed bool
	cmd := &cobra.Command{
		Use:     "end ID",
		Short:   "End a window, and print its verdict",
		Example: `  stallspan mark end "$id"`,
		Args:    cli.Needs(1, 1, "mark end needs the id that stallspan mark begin has printed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := api.FromEnvironment()
			if err != nil {
				return cli.Usage(err)
			}
			text, err := endWindow(cmd.Context(), client, args[0], window.Outcome{Unfinished: failed, Failed: failed})
			if err != nil {
				return cli.Unanswered(client, err)
			}
			line, remedy := summaryOf(text)
			if asJSON {
				line = strings.TrimRight(string(text), "\n")
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), line); err != nil {
				return fmt.Errorf("the window has ended, but its report cannot be printed: %w", err)
			}
			if remedy != "" && !asJSON { // a script logs the one line of the output
				cli.Say("try: %s", remedy)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the window's report as JSON")
	cmd.Flags().BoolVar(&failed, "failed", false,
		"the work has failed: the window counts as cut, and no baseline learns from it")
	return cmd
}

func endWindow(ctx context.Context, client *api.Client, id string, how window.Outcome) (text []byte, err error) {
	if how.Unfinished {
		return client.Cut(ctx, id, how)
	}
	return client.End(ctx, id)
}

// summaryOf is the report of a window that has ended, as a server sent it: one line, and what to try, or "".
func summaryOf(text []byte) (line, remedy string) {
	r, err := explain.ReadWindow(text)
	if err != nil {
		return "the window has ended, but its report cannot be read", ""
	}
	return reports.EndedLine(r), r.Remedy
}

// options are the flags that describe a window.
type options struct {
	api.Announcement
	kind       string
	epoch      int
	attributes []string
}

func (o *options) add(cmd *cobra.Command, pid string) {
	flags := cmd.Flags()
	flags.StringVar(&o.kind, "kind", "", "the `kind`: "+window.KindChoices)
	flags.IntVar(&o.epoch, "epoch", 0, "the epoch's `number`, as the program counts")
	flags.StringVar(&o.Name, "name", "", "a `name` for people")
	flags.StringVar(&o.Model, "model", "", "the `model` that is loaded")
	flags.StringVar(&o.Run, "run", "", "the training `run` of an epoch: its epochs share a baseline")
	flags.StringVar(&o.Path, "path", "", "the `file` or folder that is read or written")
	flags.IntVar(&o.PID, "pid", 0, pid)
	flags.StringArrayVar(&o.GPUIDs, "gpu", nil, "the `id` of a GPU that is used; repeat for each (default: all)")
	flags.StringVar(&o.Traceparent, "traceparent", "", "the parent `span`, in W3C Trace Context (default: TRACEPARENT)")
	flags.StringArrayVar(&o.attributes, "attribute", nil, "`key=value` to set on the span; repeat for each")
}

// announcement is the window that the flags describe. Its errors concern the command line.
func (o *options) announcement(cmd *cobra.Command) (api.Announcement, error) {
	a := o.Announcement
	a.Kind = window.Kind(o.kind)
	switch {
	case o.kind == "":
		return a, errors.New("--kind is missing: give " + window.KindChoices)
	case !a.Kind.Valid():
		return a, fmt.Errorf("--kind %q is unknown: give %s", o.kind, window.KindChoices)
	case cmd.Flags().Changed("pid") && o.PID <= 0:
		return a, fmt.Errorf("--pid %d is not a process: give its number, or leave it out", o.PID)
	}
	if cmd.Flags().Changed("epoch") {
		a.Epoch = &o.epoch
	}
	if o.Path != "" {
		path, err := filepath.Abs(o.Path)
		if err != nil {
			return a, fmt.Errorf("--path %s: give the absolute path: %w", o.Path, err)
		}
		a.Path = path
	}
	if inherited := os.Getenv("TRACEPARENT"); a.Traceparent == "" {
		if _, err := emit.ParseTraceparent(inherited); err == nil {
			a.Traceparent = inherited
		}
	}
	for _, pair := range o.attributes {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return a, fmt.Errorf("--attribute %q is not a pair: give key=value", pair)
		}
		if a.Attributes == nil {
			a.Attributes = map[string]string{}
		}
		a.Attributes[key] = value
	}
	return a, nil
}
