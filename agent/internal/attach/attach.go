// Package attach is the command attach: it watches a program that runs already.
package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/prometheus/procfs"
	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/procs"
	"github.com/stallspan/stallspan/agent/internal/reports"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/monitor"
	sources "github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	attachFor  = 10 * time.Second
	attachMost = 7 * 24 * time.Hour // as for an announced window
	attachJob  = "attach"
)

// attach watches a process that runs already.
type attach struct {
	json, whatIf bool
	report       string
	length       time.Duration
	foreign      bool // the user was warned that the process cannot be read in full
	out          io.Writer
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
The process is not stopped, traced or changed. ^C ends the watch early, with a table.`,
		Example: `  stallspan attach 4711
  stallspan attach train.py 30
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
	flags := cmd.Flags()
	flags.BoolVar(&a.json, "json", false, "print the report as JSON")
	flags.BoolVar(&a.whatIf, "what-if", false, reports.WhatIfUsage)
	flags.StringVar(&a.report, "report", "", "also write the report as JSON to this `file`")
	return cmd
}

func (a *attach) run(ctx context.Context, who string) error {
	found, err := procs.Find(procfs.DefaultMountPoint, who)
	if err != nil {
		return err
	}
	report, err := reports.OpenReport(a.report)
	if err != nil {
		return err
	}
	defer report.Discard()
	m, err := monitor.New(monitor.Config{Schedule: monitor.WithSchedule()})
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
	gone := found.Wait(ctx, a.length)
	whole, err := m.Windows.End(id, m.Now())
	if err != nil {
		return err
	}
	if gone {
		cli.Say("process %d ended after %s", found.PID, explain.Duration(whole.Duration().Seconds()))
	}
	windows, problems := []*window.Report{whole}, m.Problems()
	return errors.Join(a.show(windows, problems), report.Save(reports.NewDocument(whole, windows, problems)))
}

func (a *attach) show(windows []*window.Report, problems []error) error {
	if a.json {
		return output.WriteJSON(a.out, reports.NewDocument(nil, windows, problems))
	}
	if a.foreign { // the warning at the begin is about these
		problems = slices.DeleteFunc(slices.Clone(problems), ofOtherUser)
	}
	reports.PrintTable(a.out, windows, problems)
	if a.whatIf {
		reports.PrintWhatIf(a.out, windows)
	}
	return nil
}

// ofOtherUser reports whether a problem is that a process belongs to another user.
func ofOtherUser(problem error) bool {
	return errors.Is(problem, sources.ErrOtherUser)
}
