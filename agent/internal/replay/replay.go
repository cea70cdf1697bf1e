// Package replay is the command replay: it computes the report of a recording.
package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/record"
	"github.com/stallspan/stallspan/agent/internal/reports"
	"github.com/stallspan/stallspan/agent/internal/stat"
	"github.com/stallspan/stallspan/agent/internal/telemetry"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// Command is stallspan replay.
func Command() *cobra.Command {
	var p replay
	cmd := &cobra.Command{
		Use:   "replay [flags] FILE",
		Short: "Show again where the time of a recorded machine's windows went",
		Long: `Reads a recording as fast as possible, and prints the table that was printed on the recorded
machine, with the same numbers. - is standard input.`,
		Example: `  stallspan replay machine.gz
  stallspan replay --report report.json machine.gz
  stallspan replay --what-if machine.gz`,
		Args: cli.Needs(1, 1, "replay needs a recording: stallspan replay machine.gz"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.out = cmd.OutOrStdout()
			return p.run(cmd.Context(), args[0])
		},
	}
	p.outputs.Add(cmd.Flags(), "on standard output")
	return cmd
}

// replay is one reading of a recording.
type replay struct {
	outputs reports.OutputFlags
	out     io.Writer

	monitor *monitor.Monitor
	windows telemetry.Timeline
	devices *stat.Devices
	whole   *window.Report  // of the window over a whole run; nil without one
	began   *monitor.Moment // when all sources had been read for the first time
	early   int             // windows that ended but began before the recording
	refused []error         // why a mark could not be repeated, each reason once
}

func (p *replay) run(ctx context.Context, path string) error {
	files, err := p.outputs.Open()
	if err != nil {
		return err
	}
	defer files.Discard()
	file, name := os.Stdin, "standard input"
	if path != "-" {
		name = path
		if file, err = os.Open(path); err != nil {
			return fmt.Errorf("the recording %s cannot be read: %w", path, errors.Unwrap(err))
		}
	}
	defer func() { _ = file.Close() }()
	reader, err := recording.NewReader(file)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	first := reader.Header()
	p.monitor, err = monitor.New(monitor.Config{Recorded: true, Boot: first.Boot, Interval: first.Interval,
		Reports: p.ended})
	if err != nil {
		return fmt.Errorf("%s: the recording's first line is damaged: %w", name, err)
	}
	defer p.monitor.Stop()
	files.Trace.Begin(first)
	p.devices = stat.NewDevices(files.Journal(nil))
	failed := p.feed(ctx, reader)
	if ctx.Err() != nil {
		return cli.ExitError{Code: cli.ExitInterrupted, Err: errors.New("the replay was interrupted")}
	}
	p.endAll()
	doc := reports.NewDocument(p.whole, p.reports(), p.problems())
	title := filepath.Base(path)
	if p.whole != nil {
		title = cmp.Or(p.whole.Run, title)
	}
	shown := reports.Pictured{Title: title, Monitor: p.monitor, Whole: p.whole, Windows: p.reports()}
	if failed != nil {
		failed = fmt.Errorf("%s: %w", name, failed)
	}
	return cli.SayAll(append([]error{failed, p.show(&doc)}, files.Save(doc, shown)...)...)
}

// feed gives the recording to the monitor, until it ends or ctx does.
func (p *replay) feed(ctx context.Context, r *recording.Reader) error {
	var e recording.Entry
	for ctx.Err() == nil {
		switch err := r.Next(&e); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		err := p.monitor.Feed(&e)
		_ = p.devices.Write(&e) // it writes to nothing
		if e.Mark != nil {
			p.note(e.Mark, err)
		}
	}
	return nil
}

// maxRefused bounds the reasons that are kept.
const maxRefused = 8

// note records the result of feeding a mark.
func (p *replay) note(m *recording.Mark, err error) {
	switch {
	case m.Op == recording.Tick && p.began == nil:
		now := p.monitor.Now()
		p.began = &now
	case errors.Is(err, windows.ErrUnknown):
		p.early++
	case err != nil && len(p.refused) < maxRefused:
		p.refused = append(p.refused, err)
	}
}

// ended collects the report of each window that ends.
func (p *replay) ended(r *window.Report) {
	if p.whole == nil && r.Owned && r.Kind == window.Custom && r.Run != "" && r.Name == r.Run {
		p.whole = r
	} else {
		p.windows.Add(r)
	}
}

// endAll ends the windows that are open when the recording ends, as it does when its program was killed. A recording
// without a window over all of it gets one.
func (p *replay) endAll() {
	last := p.monitor.Now()
	for _, r := range p.monitor.Windows.Running() {
		how := window.Outcome{Unfinished: true, Ended: "the end of the recording"}
		_, _ = p.monitor.Windows.Cut(r.ID, last, how) // ErrUnknown is not possible: only endAll ends it
	}
	if p.whole == nil && p.began != nil {
		id, _ := p.monitor.Windows.Begin(record.WholeWindow(), *p.began) // not refused: all others have ended
		_, _ = p.monitor.Windows.End(id, last)
	}
}

// reports lists the reports of windows, or that of the whole run if there are no others.
func (p *replay) reports() []*window.Report {
	reports, _ := p.windows.Sorted()
	if len(reports) == 0 && p.whole != nil {
		reports = append(reports, p.whole)
	}
	return reports
}

func (p *replay) problems() []error {
	list := append(p.monitor.Problems(), p.refused...)
	if p.early > 0 {
		list = append(list, fmt.Errorf("%s began before the recording", sampling.Count(p.early, "window")))
	}
	if _, dropped := p.windows.Sorted(); dropped > 0 {
		list = append(list, fmt.Errorf("%d windows after the first %d are left out", dropped, telemetry.MaxReports))
	}
	return list
}

func (p *replay) show(d *reports.Document) error {
	if p.outputs.JSON {
		return output.WriteJSON(p.out, d)
	}
	ofMachine := p.whole != nil && p.whole.Name == record.Name // with epochs of several programs
	if windows, _ := p.windows.Sorted(); len(windows) == 0 && ofMachine {
		return output.Printed(p.devices.Print(p.out, p.problems()))
	}
	reports.PrintTable(p.out, p.reports(), p.problems())
	if p.whole != nil && !ofMachine {
		if err := output.WriteTable(p.out, reports.NewSummary(p.whole, p.reports()).Write); err != nil {
			return err
		}
	}
	if p.outputs.WhatIf {
		reports.PrintWhatIf(p.out, p.reports())
	}
	return nil
}
