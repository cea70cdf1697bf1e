package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/session"
	"github.com/stallspan/stallspan/internal/window"
)

func replayCommand() *cobra.Command {
	var p replay
	cmd := &cobra.Command{
		Use:   "replay [flags] FILE...",
		Short: "Say again what a recorded machine's windows spent their time on",
		Long: `Reads a recording as fast as it can and prints the table that was printed where it was made: each window with the same
numbers. Give all files of a recording at once, in any order; - is standard input.`,
		Example: `  stallspan replay machine.gz
  stallspan replay --report report.json machine.gz machine.gz.1 machine.gz.2`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("replay needs a recording: stallspan replay machine.gz")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			p.out = cmd.OutOrStdout()
			return p.run(cmd.Context(), args)
		},
	}
	cmd.Flags().StringVar(&p.reportPath, "report", "", "write the report as JSON to this `file`")
	cmd.Flags().BoolVar(&p.asJSON, "json", false, "print the report as JSON on standard output")
	return cmd
}

// replay is one reading of a recording.
type replay struct {
	reportPath string
	asJSON     bool
	out        io.Writer

	monitor *monitor.Monitor
	reports []*window.Report
	skipped int             // reports that were not kept
	whole   *window.Report  // of the window that is a whole run; nil where there is none
	began   *monitor.Moment // when all sources had been read for the first time
	early   int             // windows that ended and had not begun
	refused []error         // why a mark could not be done again, each reason once
	gaps    []error         // parts that are missing
}

func (p *replay) run(ctx context.Context, paths []string) error {
	report, err := openReport(p.reportPath)
	if err != nil {
		return failure{exitFailed, err}
	}
	defer report.discard()
	parts, err := openParts(paths)
	defer closeParts(parts)
	if err != nil {
		return failure{exitFailed, err}
	}
	first := parts[0].reader.Header()
	p.monitor, err = monitor.New(monitor.Config{Recorded: true, Boot: first.Boot, Interval: first.Interval})
	if err != nil {
		return failure{exitFailed, fmt.Errorf("%s: the recording's first line is damaged: %w", parts[0].path, err)}
	}
	defer p.monitor.Stop()
	p.monitor.OnEnd(p.ended)
	failed := p.feedAll(ctx, parts)
	if ctx.Err() != nil {
		return failure{exitSignalBase + 2, errors.New("the replay was interrupted")}
	}
	p.endAll()
	doc := p.document()
	return sayAll(append(failed, p.show(&doc), report.save(doc))...)
}

// feedAll feeds all parts. What is wrong with one of them does not keep the next one from being fed.
func (p *replay) feedAll(ctx context.Context, parts []*part) (failed []error) {
	last := -1
	for _, part := range parts {
		if from := part.reader.Header().Part; last >= 0 && from > last+1 {
			p.gaps = append(p.gaps, missing(last+1, from-1))
		}
		if err := p.feed(ctx, part.reader); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", part.path, err))
		}
		last = part.reader.Header().Part
	}
	return failed
}

func missing(from, to int) error {
	if from == to {
		return fmt.Errorf("part %d of the recording, which was not given: windows across it lack its time", from)
	}
	return fmt.Errorf("parts %d to %d of the recording, which were not given: windows across them lack their time", from, to)
}

// feed gives one part to the monitor, until it ends or ctx does.
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
		if e.Mark != nil {
			p.note(e.Mark, err)
		}
	}
	return nil
}

// mostRefused bounds the reasons that are told.
const mostRefused = 8

// note looks at a mark that was fed, and at what came of it.
func (p *replay) note(m *recording.Mark, err error) {
	switch {
	case m.Op == recording.Tick && p.began == nil:
		now := p.monitor.Now()
		p.began = &now
	case errors.Is(err, window.ErrUnknown):
		p.early++
	case err != nil && len(p.refused) < mostRefused:
		p.refused = append(p.refused, err)
	}
}

// ended is told of each window that ends.
func (p *replay) ended(r *window.Report) {
	switch {
	case p.whole == nil && r.Owned && r.Kind == window.Custom && r.Run != "" && r.Name == r.Run:
		p.whole = r
	case len(p.reports) < mostReports:
		p.reports = append(p.reports, r)
	default:
		p.skipped++
	}
}

// endAll closes what is open when the recording ends: whoever recorded was killed. A recording that has no window over
// all of it gets one.
func (p *replay) endAll() {
	last := p.monitor.Now()
	for _, r := range p.monitor.Running() {
		_, _ = p.monitor.Cut(r.ID, last) // ErrUnknown: nobody else ends it
	}
	if p.whole == nil && p.began != nil {
		id, _ := p.monitor.Begin(wholeRecording(), *p.began) // all others have ended: it is not refused
		_, _ = p.monitor.End(id, last)
	}
	session.Sort(p.reports)
}

func (p *replay) document() document {
	windows := append([]*window.Report{}, p.reports...) // an empty list is one, too
	if len(windows) == 0 && p.whole != nil {
		windows = append(windows, p.whole)
	}
	return document{Run: p.whole, Windows: windows, Problems: texts(p.problems())}
}

func (p *replay) problems() []error {
	list := append(p.monitor.Problems(), p.gaps...)
	list = append(list, p.refused...)
	if p.early > 0 {
		list = append(list, fmt.Errorf("%s that began before what was replayed", monitor.Count(p.early, "window")))
	}
	if p.skipped > 0 {
		list = append(list, fmt.Errorf("%d windows after the first %d", p.skipped, mostReports))
	}
	return list
}

func (p *replay) show(d *document) error {
	if !p.asJSON {
		printTable(p.out, d.Windows, p.problems())
		return nil
	}
	encoder := json.NewEncoder(p.out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(d)
}
