package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/compare"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/session"
	"github.com/stallspan/stallspan/internal/window"
)

func markCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mark",
		Short: "Say from a script when a model load, an epoch or anything else begins and ends",
		Long: `Tells whoever watches this machine (the stallspan run around this script, a stallspan agent, or an OpenTelemetry
Collector with the receiver stallspan) when something begins and ends, so that it can say where the time between went.
Where its socket is not the usual one, STALLSPAN_SOCKET says where.`,
		Example: `  stallspan mark run --kind model_load --model resnet50 -- ./load-model
  id=$(stallspan mark begin --kind epoch --epoch 3); ./train-an-epoch; stallspan mark end "$id"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%q is no command of mark: see stallspan mark --help", args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(markBeginCommand(), markEndCommand(), markRunCommand())
	return cmd
}

func markBeginCommand() *cobra.Command {
	var o markOptions
	cmd := &cobra.Command{
		Use:   "begin --kind KIND [flags]",
		Short: "Begin a window, and print its id",
		Example: `  id=$(stallspan mark begin --kind epoch --epoch 3)
  stallspan mark end "$id"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("mark begin takes flags alone, and was given %q: a program is run by stallspan mark run", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := o.announcement(cmd)
			if err != nil {
				return err
			}
			if a.PID == 0 {
				a.PID = os.Getppid() // this process ends at once; 0 in a container's own namespace: the API takes ours
			}
			return markBegin(cmd, a)
		},
	}
	o.add(cmd, "the process whose work it is, with those below it (default: the shell that calls this)")
	return cmd
}

func markBegin(cmd *cobra.Command, a api.Announcement) error {
	client := api.NewClient(api.DefaultSocket())
	begun, err := client.Begin(cmd.Context(), a)
	if err != nil {
		return failure{exitFailed, unanswered(err)}
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), begun.ID); err != nil {
		_, _ = client.End(cmd.Context(), begun.ID) // nobody knows its id, so nobody could end it
		return failure{exitFailed, fmt.Errorf("the window's id cannot be printed: %w", err)}
	}
	return nil
}

func markEndCommand() *cobra.Command {
	var asJSON, failed bool
	cmd := &cobra.Command{
		Use:     "end ID",
		Short:   "End a window, and print what was found",
		Example: `  stallspan mark end "$id"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return errors.New("mark end needs the id that stallspan mark begin has printed")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := endWindow(cmd.Context(), api.NewClient(api.DefaultSocket()), args[0], failed)
			if err != nil {
				return failure{exitFailed, unanswered(err)}
			}
			line := strings.TrimRight(string(report), "\n")
			if !asJSON {
				line = told(report, true)
			}
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), line); err != nil {
				return failure{exitFailed, fmt.Errorf("the window has ended, and its report cannot be printed: %w", err)}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the window's report as JSON")
	cmd.Flags().BoolVar(&failed, "failed", false, "what the window was about has failed: it counts as cut, and is not learned from")
	return cmd
}

func endWindow(ctx context.Context, client *api.Client, id string, failed bool) (report []byte, err error) {
	if failed {
		return client.Fail(ctx, id)
	}
	return client.End(ctx, id)
}

// told says a window's report in one line, with what was found where that is wanted, or where nothing else says why the
// window is slow.
func told(report []byte, finding bool) string {
	var w compare.Window
	if err := json.Unmarshal(report, &w); err != nil || w.Duration == nil {
		return "the window has ended, and its report cannot be read"
	}
	verdict := string(w.Verdict)
	if w.Slow {
		verdict += " SLOW"
	}
	label := w.Label()
	if w.Unfinished {
		label += " (cut)"
	}
	line := fmt.Sprintf("%s: %s, %s", label, window.Short(*w.Duration), verdict)
	finding = finding || w.SlowReason == window.SlowThreshold || w.SlowReason == window.SlowBaseline
	if finding && w.Finding != "" {
		line += ". " + w.Finding
	}
	return printable(line)
}

// unanswered says what to do where the API did not do what was asked. A refusal has its own words.
func unanswered(err error) error {
	path := api.DefaultSocket()
	var refused *api.Error
	switch {
	case errors.As(err, &refused):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nobody answers at %s: start stallspan agent or a Collector with the receiver stallspan, or set %s to where one answers",
			path, api.SocketVariable)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s lets only its owner and group in: become one of them, or set %s to another path", path, api.SocketVariable)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("what listens at %s did not answer in time: see whether it hangs", path)
	}
	return err
}

// markOptions are the flags that say what a window is about.
type markOptions struct {
	kind, name, model, run, path, traceparent string

	epoch, pid int
	gpus       []string
	attributes []string
}

func (o *markOptions) add(cmd *cobra.Command, pid string) {
	flags := cmd.Flags()
	flags.StringVar(&o.kind, "kind", "", "what it is: `model_load`, epoch, checkpoint or custom")
	flags.IntVar(&o.epoch, "epoch", 0, "the epoch's `number`, as the program counts")
	flags.StringVar(&o.name, "name", "", "what a person calls it: a `text`")
	flags.StringVar(&o.model, "model", "", "the `model` that is loaded")
	flags.StringVar(&o.run, "run", "", "the training `run` that an epoch is of: later epochs of it are compared with earlier ones")
	flags.StringVar(&o.path, "path", "", "the `file` or folder that is read or written")
	flags.IntVar(&o.pid, "pid", 0, pid)
	flags.StringArrayVar(&o.gpus, "gpu", nil, "the `id` of a GPU that it concerns; once for each (default: all)")
	flags.StringVar(&o.traceparent, "traceparent", "", "the `span` it belongs to, as W3C Trace Context writes it (default: TRACEPARENT)")
	flags.StringArrayVar(&o.attributes, "attribute", nil, "`key=value` to put on its span; once for each")
}

// announcement is what the flags say. Its errors are those of a wrong command line.
func (o *markOptions) announcement(cmd *cobra.Command) (api.Announcement, error) {
	a := api.Announcement{Kind: window.Kind(o.kind), Name: o.name, Model: o.model, Run: o.run, PID: o.pid, GPUIDs: o.gpus, Traceparent: o.traceparent}
	switch {
	case o.kind == "":
		return a, errors.New("--kind is missing: give model_load, epoch, checkpoint or custom")
	case !a.Kind.Valid():
		return a, fmt.Errorf("--kind %s is none: give model_load, epoch, checkpoint or custom", o.kind)
	case cmd.Flags().Changed("pid") && o.pid <= 0:
		return a, fmt.Errorf("--pid %d is no process: give its number, or leave it out", o.pid)
	}
	if cmd.Flags().Changed("epoch") {
		a.Epoch = &o.epoch
	}
	if o.path != "" {
		path, err := filepath.Abs(o.path)
		if err != nil {
			return a, fmt.Errorf("--path %s: give the absolute path: %w", o.path, err)
		}
		a.Path = path
	}
	if inherited := os.Getenv("TRACEPARENT"); a.Traceparent == "" {
		if _, err := session.ParseTraceparent(inherited); err == nil {
			a.Traceparent = inherited
		}
	}
	for _, pair := range o.attributes {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return a, fmt.Errorf("--attribute %s: give it as key=value", pair)
		}
		if a.Attributes == nil {
			a.Attributes = map[string]string{}
		}
		a.Attributes[key] = value
	}
	return a, nil
}
