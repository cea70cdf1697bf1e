package reports

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/page"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
)

// OutputFlags are the flags for what a command writes when it ends, and for what it prints beyond the table.
type OutputFlags struct {
	Report, HTML, Perfetto string
	JSON, WhatIf           bool
}

// Add adds the flags to a command. printed says where --json prints.
func (o *OutputFlags) Add(flags *pflag.FlagSet, printed string) {
	flags.StringVar(&o.HTML, "html", "", "write the report as one HTML `file`, to look at and to send")
	flags.StringVar(&o.Perfetto, "perfetto", "",
		"write windows, threads and devices as a trace for ui.perfetto.dev to this `file`")
	flags.StringVar(&o.Report, "report", "", "write the report as JSON to this `file`")
	flags.BoolVar(&o.JSON, "json", false, "print the report as JSON "+printed)
	flags.BoolVar(&o.WhatIf, "what-if", false,
		"also print how much faster each window would be with\ninstant storage, more workers, or a faster GPU")
}

// Outputs are the files that a command writes when it ends: a report in JSON, one in HTML, and a trace, which grows
// before.
type Outputs struct {
	report, html *ReportFile
	Trace        *traceFile
}

// Open opens the files. --report with a name that ends in .html is --html.
func (o *OutputFlags) Open() (*Outputs, error) { return openOutputs(o.Report, o.HTML, o.Perfetto) }

func openOutputs(report, html, perfetto string) (*Outputs, error) {
	if extension := strings.ToLower(filepath.Ext(report)); html == "" && (extension == ".html" || extension == ".htm") {
		report, html = "", report
	}
	o := &Outputs{}
	if err := distinct(report, html, perfetto); err != nil {
		return nil, err
	}
	var err error
	if o.report, err = OpenReport(report); err != nil {
		return nil, err
	}
	if o.html, err = OpenOutput("--html", html); err != nil {
		o.report.Discard()
		return nil, err
	}
	o.Trace = &traceFile{path: perfetto}
	if o.Trace.ReportFile, err = OpenOutput("--perfetto", perfetto); err != nil {
		o.report.Discard()
		o.html.Discard()
		return nil, err
	}
	return o, nil
}

// distinct returns an error if two outputs would replace each other.
func distinct(paths ...string) error {
	for i, path := range paths {
		target, err := trust.Follow(path)
		if path == "" || err != nil {
			continue
		}
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			continue // a pipe or a device
		}
		for _, earlier := range paths[:i] {
			if other, err := trust.Follow(earlier); earlier != "" && err == nil && other == target {
				return fmt.Errorf("%s cannot hold two outputs: give --report, --html and --perfetto a file each", path)
			}
		}
	}
	return nil
}

// Live is the input of the trace of this machine, and of what else needs its readings. other may be nil.
func (o *Outputs) Live(other monitor.Journal) monitor.Journal {
	o.Trace.live()
	return o.Journal(other)
}

// Journal is the input of a trace that has begun, and of what else needs readings. other may be nil.
func (o *Outputs) Journal(other monitor.Journal) monitor.Journal {
	var all journals
	if other != nil {
		all = append(all, other)
	}
	if o.Trace.trace != nil {
		all = append(all, o.Trace.trace)
	}
	switch len(all) {
	case 0:
		return nil
	case 1: // its errors are problems of the run
		return all[0]
	}
	return &all
}

// journals are several inputs. One that fails gets nothing more, and its owner has the error.
type journals []monitor.Journal

// Write is of monitor.Journal.
func (all *journals) Write(e *recording.Entry) error {
	*all = slices.DeleteFunc(*all, func(j monitor.Journal) bool { return j.Write(e) != nil })
	return nil
}

// Discard removes the files that were not saved.
func (o *Outputs) Discard() {
	o.report.Discard()
	o.html.Discard()
	o.Trace.Discard()
}

// Save writes all files. It returns what went wrong.
func (o *Outputs) Save(d Document, p Pictured) (failed []error) {
	failed = append(failed, o.report.Save(d), o.Trace.save(p.Whole, p.Windows))
	if o.html.file == nil {
		return failed
	}
	var text bytes.Buffer
	if err := page.Write(&text, p.data(d.Problems)); err != nil {
		return append(failed, err)
	}
	return append(failed, o.html.SaveText(text.Bytes(), ".html"))
}

// Pictured is what the page shows.
type Pictured struct {
	Title   string
	Facts   []page.Fact
	Monitor *monitor.Monitor
	Whole   *window.Report // nil if the windows have nothing in common
	Windows []*window.Report
}

func (p Pictured) data(problems []string) *page.Data {
	d := &page.Data{Title: p.Title, Facts: p.Facts, Windows: []page.Window{}, Problems: problems}
	reports := p.Windows
	if p.Whole != nil {
		reports = append(slices.Clone(reports), p.Whole)
	}
	if len(reports) == 0 {
		return d
	}
	first := slices.MinFunc(reports, func(a, b *window.Report) int { return cmp.Compare(a.Start.Mono, b.Start.Mono) })
	last := slices.MaxFunc(reports, func(a, b *window.Report) int { return cmp.Compare(a.End.Mono, b.End.Mono) })
	origin, end := first.Start.Mono, last.End.Mono
	d.Origin, d.Duration = first.Start.Wall, (end - origin).Seconds()
	if p.Whole != nil {
		whole := page.NewWindow(p.Whole, origin)
		d.Run = &whole
	}
	for _, r := range p.Windows {
		d.Windows = append(d.Windows, page.NewWindow(r, origin))
	}
	d.Curves = page.NewCurves(p.Monitor.History(), page.CeilingsOf(reports), origin, end)
	return d
}

// Host is the name of this machine, for the head of a page.
func Host() []page.Fact {
	name, err := os.Hostname()
	if err != nil {
		return nil
	}
	return []page.Fact{{Name: "host", Value: name}}
}
