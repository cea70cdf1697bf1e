package top

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/prometheus/procfs"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/procs"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/monitor"
)

// sampling is the time between two readings. The agent reads more often: its windows may be short. What is divided
// here is at least ten seconds long, and most of the cost of a reading is the same for any interval.
const sampling = 250 * time.Millisecond

// maxTopJobs is how many processes top follows by name.
const maxTopJobs = 16

// Command is stallspan top.
func Command() *cobra.Command {
	interval := time.Second
	cmd := &cobra.Command{
		Use:   "top [flags] [PID|NAME...]",
		Short: "Show GPUs, disks, jobs and epochs live, with why each job waits",
		Long: `Shows this machine on the whole terminal: its GPUs with their processes, its disks, and jobs with
the ledger of the last 10 seconds and since they are watched. Without PID or NAME, jobs are the
processes that hold GPU memory, and those that work most. h shows the keys.`,
		Example: `  stallspan top
  stallspan top train.py`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > maxTopJobs {
				return cli.Usagef("%d processes: top follows at most %d", len(args), maxTopJobs)
			}
			if interval < config.DefaultInterval || interval > time.Minute {
				return cli.Usagef("--interval %v: choose %v to %v", interval, config.DefaultInterval, time.Minute)
			}
			if !term.IsTerminal(int(os.Stdout.Fd())) {
				return cli.Usagef("top needs a terminal: use stallspan stat for a file or a pipe")
			}
			return show(cmd.Context(), interval, args)
		},
	}
	cli.DurationFlag(cmd.Flags(), &interval, "interval", "`time` between two frames (default: 1 s)")
	return cmd
}

// show shows this machine.
func show(ctx context.Context, interval time.Duration, who []string) error {
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
	return Run(ctx, NewView(interval, false), output.Colors, machine.Next)
}
