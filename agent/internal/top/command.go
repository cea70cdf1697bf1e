package top

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/procfs"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/procs"
	"github.com/stallspan/stallspan/agent/internal/recorded"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
)

// sampling is the time between two readings. The agent reads more often: its windows may be short. What is divided
// here is at least ten seconds long, and most of the cost of a reading is the same for any interval.
const sampling = 250 * time.Millisecond

// maxTopJobs is how many processes top follows by name.
const maxTopJobs = 16

// options are the flags of top.
type options struct {
	interval time.Duration
	from     []string
}

// Command is stallspan top.
func Command() *cobra.Command {
	o := options{interval: time.Second}
	cmd := &cobra.Command{
		Use:   "top [flags] [PID|NAME...]",
		Short: "Show GPUs, disks, jobs and epochs live, with why each job waits",
		Long: `Shows this machine on the whole terminal: its GPUs with their processes, its disks, and jobs with
the ledger of the last 10 seconds and since they are watched. Without PID or NAME, jobs are the
processes that hold GPU memory, and those that work most. h shows the keys.`,
		Example: `  stallspan top
  stallspan top train.py
  stallspan top --from machine.gz`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > maxTopJobs {
				return cli.Usagef("%d processes: top follows at most %d", len(args), maxTopJobs)
			}
			if o.interval < config.DefaultInterval || o.interval > time.Minute {
				return cli.Usagef("--interval %v: choose %v to %v", o.interval, config.DefaultInterval, time.Minute)
			}
			return o.show(cmd.Context(), args)
		},
	}
	flags := cmd.Flags()
	cli.DurationFlag(flags, &o.interval, "interval", "`time` between two frames (default: 1 s)")
	flags.StringArrayVar(&o.from, "from", nil, "show this recording `file`; repeat for each of its parts")
	return cmd
}

func (o *options) show(ctx context.Context, who []string) error {
	switch {
	case len(o.from) > 0 && len(who) > 0:
		return cli.Usagef("--from shows all jobs of a recording: leave %s out, and press / to filter", who[0])
	case !term.IsTerminal(int(os.Stdout.Fd())):
		return cli.Usagef("top needs a terminal: use stallspan stat for a file or a pipe")
	case len(o.from) > 0:
		return o.recorded(ctx)
	}
	return o.live(ctx, who)
}

// live shows this machine.
func (o *options) live(ctx context.Context, who []string) error {
	var jobs []procs.Process
	for _, name := range who {
		found, err := procs.Find(procfs.DefaultMountPoint, name)
		if err != nil {
			return err
		}
		jobs = append(jobs, found)
	}
	fs, err := procfs.NewFS(procfs.DefaultMountPoint)
	if err != nil {
		return fmt.Errorf("processes cannot be read: %w", err)
	}
	client, err := api.FromEnvironment()
	if err != nil {
		return cli.Usage(err)
	}
	m, err := monitor.New(monitor.Config{Schedule: monitor.WithSchedule(),
		Interval: sampling})
	if err != nil {
		return err
	}
	m.Start()
	defer m.Stop()
	machine, err := NewMachine(m, client, fs, jobs)
	if err != nil {
		return err
	}
	next := func(ctx context.Context, _ int) ([]*Frame, error) {
		return []*Frame{machine.Next(ctx)}, nil
	}
	return Run(ctx, NewView(o.interval, "", false), output.Colors, next)
}

// recorded shows a recording.
func (o *options) recorded(ctx context.Context) error {
	parts, err := recorded.Open(o.from)
	defer recorded.Close(parts)
	if err != nil {
		return err
	}
	first := parts[0].Reader.Header()
	m, err := monitor.New(monitor.Config{Recorded: true, Boot: first.Boot, Interval: first.Interval})
	if err != nil {
		return fmt.Errorf("%s: the recording's first line is damaged: %w", parts[0].Path, err)
	}
	defer m.Stop()
	r := NewRecording(m, first.Host, o.interval, recorded.Entries(parts))
	view := NewView(o.interval, filepath.Base(o.from[0]), false)
	return Run(ctx, view, output.Colors, func(ctx context.Context, n int) (frames []*Frame, err error) {
		began := sample.Now().Mono
		for len(frames) < n && ctx.Err() == nil && sample.Now().Mono-began < DrawEvery {
			f, err := r.Next()
			if err != nil {
				return frames, err
			}
			frames = append(frames, f)
		}
		return frames, nil
	})
}
