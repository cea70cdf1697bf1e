// Package attach is the command attach: it watches a program that runs already.
package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/procs"
	"github.com/stallspan/stallspan/agent/internal/reports"
	"github.com/stallspan/stallspan/agent/internal/telemetry"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/progress"
	"github.com/stallspan/stallspan/internal/progress/follow"
	sources "github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

const (
	attachFor  = 10 * time.Second
	attachMost = 7 * 24 * time.Hour // as for an announced window
	attachJob  = "attach"
)

// attach watches a process that runs already.
type attach struct {
	outputs reports.OutputFlags
	length  time.Duration
	foreign bool // the user was warned that the process cannot be read in full
	out     io.Writer
}

// Command is stallspan attach.
func Command() *cobra.Command {
	var a attach
	cmd := &cobra.Command{
		Use:     "attach [flags] PID|NAME [SECONDS]",
		Aliases: []string{"why"},
		Short:   "Watch a program that runs already, and show where its time goes",
		Long: `Watches a process and its children for 10 seconds, without a restart and without an agent. Then it
prints where the time went, why, and what to try. NAME is the name of a program or of its script.
If its output goes to a file, the epochs and model loads that it prints meanwhile are shown, too.
The process is not stopped, traced or changed. ^C ends the watch early, with a table.`,
		Example: `  stallspan attach 4711
  stallspan attach train.py 30
  stallspan attach --html report.html train.py
  stallspan why train.py`,
		Args: cli.Needs(1, 2, "attach needs one process: stallspan attach PID, or stallspan attach train.py"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			a.length = attachFor
			if len(args) == 2 {
				a.length, err = cli.ParseDuration(args[1])
				if err != nil || a.length < time.Second || a.length > attachMost {
					return cli.Usagef("SECONDS is %q: give a time from 1 s to 7 days, such as 30 or 5m", args[1])
				}
			}
			a.out = cmd.OutOrStdout()
			return a.run(cmd.Context(), args[0])
		},
	}
	a.outputs.Add(cmd.Flags(), "on standard output")
	return cmd
}

func (a *attach) run(ctx context.Context, who string) error {
	found, err := procs.Find(procfs.DefaultMountPoint, who)
	if err != nil {
		return err
	}
	files, err := a.outputs.Open()
	if err != nil {
		return err
	}
	defer files.Discard()
	m, err := monitor.New(monitor.Config{Journal: files.Live(nil), Schedule: monitor.WithSchedule()})
	if err != nil {
		return err
	}
	m.Start()
	defer m.Stop()
	if err := m.Jobs.Follow(attachJob, found.PID, "", false); err != nil {
		return fmt.Errorf("process %d cannot be followed: %w", found.PID, err)
	}
	defer m.Jobs.Unfollow(attachJob)
	id, err := m.Windows.Begin(window.Window{Kind: window.Custom, Name: found.Name, Run: found.Name, Job: attachJob,
		Source: window.Announced, PID: found.PID}, m.Now())
	if err != nil {
		return err
	}
	if a.foreign = found.Foreign && slices.ContainsFunc(m.Problems(), ofOtherUser); a.foreign {
		cli.Warn(fmt.Errorf("process %d belongs to another user: run as that user or with sudo, "+
			"else waiting for storage is not seen", found.PID))
	}
	cli.Say("watching %s (process %d) for %s; stop with ^C", output.Printable(window.ShownName(found.Name)), found.PID,
		explain.Duration(a.length.Seconds()))
	var lines telemetry.Timeline
	stop := a.readOutput(m, found, &lines)
	gone := found.Wait(ctx, a.length)
	stop(gone)
	whole, err := m.Windows.End(id, m.Now())
	if err != nil {
		return err
	}
	if gone {
		cli.Say("process %d ended after %s", found.PID, explain.Duration(whole.Duration().Seconds()))
	}
	printed, _ := lines.Sorted()
	all, problems := append([]*window.Report{whole}, printed...), m.Problems()
	saved := files.Save(reports.NewDocument(whole, all, problems), reports.Pictured{Title: found.Name,
		Facts: reports.Host(), Monitor: m, Whole: whole, Windows: all[min(len(printed), 1):]}) // if it has others
	return cli.SayAll(append(saved, a.show(all, problems))...)
}

// readOutput makes windows of what the process prints, if that goes to a file. stop returns when all of them have their
// reports.
func (a *attach) readOutput(m *monitor.Monitor, found procs.Process, to *telemetry.Timeline) (stop func(gone bool)) {
	client := m.Windows.NewClient(windows.Options{Spans: begin, Durations: &emit.Durations{}, Run: found.Name,
		Job: attachJob, Reports: to.Add})
	reader, _ := progress.NewReader(progress.Options{}) // fails only with a pattern of the user
	f := follow.NewLate(m, &follow.Windows{Client: client}, reader, attachJob, m.Now())
	streams, why := openStreams(found.PID, f.Line)
	if why != nil {
		cli.Say("%v (for epochs and loads, start the program with stallspan run)", why)
	}
	for _, s := range streams {
		cli.Say("reading its output in %s", output.Printable(s.name))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() {
		if err := read(ctx, streams); err != nil {
			cli.Say("%v", err)
		}
	})
	return func(gone bool) {
		cancel()
		reading.Wait()
		for _, s := range streams {
			_ = s.file.Close()
		}
		f.Exited()
		if gone {
			f.Close(window.Outcome{})
		}
		f.Leave()
		client.EndAll(m.Now(), window.Outcome{})
	}
}

func (a *attach) show(windows []*window.Report, problems []error) error {
	if a.outputs.JSON {
		return output.WriteJSON(a.out, reports.NewDocument(nil, windows, problems))
	}
	if a.foreign { // the warning at the begin is about these
		problems = slices.DeleteFunc(slices.Clone(problems), ofOtherUser)
	}
	reports.PrintTable(a.out, windows, problems)
	if a.outputs.WhatIf {
		reports.PrintWhatIf(a.out, windows)
	}
	return nil
}

// ofOtherUser reports whether a problem is that a process belongs to another user.
func ofOtherUser(problem error) bool {
	return errors.Is(problem, sources.ErrOtherUser)
}
