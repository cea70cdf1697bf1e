package agent

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/page"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	htmlUsage     = "write the report as one HTML `file`, to look at and to send"
	perfettoUsage = "write windows, threads and devices as a trace for ui.perfetto.dev to this `file`"
)

// outputs are the files that a command writes when it ends: a report in JSON, one in HTML, and a trace, which grows
// before.
type outputs struct {
	report, html *reportFile
	trace        *traceFile
	threads      page.Threads // for html
}

// openOutputs opens the files of --report, --html and --perfetto. --report with a name that ends in .html is --html.
func openOutputs(report, html, perfetto string) (*outputs, error) {
	if html == "" && isHTML(report) {
		report, html = "", report
	}
	o := &outputs{}
	if err := distinct(report, html, perfetto); err != nil {
		return nil, err
	}
	var err error
	if o.report, err = openReport(report); err != nil {
		return nil, err
	}
	if o.html, err = openOutput("--html", html); err != nil {
		o.report.discard()
		return nil, err
	}
	if o.trace, err = openTrace(perfetto); err != nil {
		o.report.discard()
		o.html.discard()
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

// live is the input of the trace of this machine, and of what else needs its readings. other may be nil.
func (o *outputs) live(other monitor.Journal) monitor.Journal {
	o.trace.live()
	return o.journal(other)
}

// journal is the input of a trace that has begun, and of what else needs readings. other may be nil.
func (o *outputs) journal(other monitor.Journal) monitor.Journal {
	var all journals
	if other != nil {
		all = append(all, other)
	}
	if o.trace.trace != nil {
		all = append(all, o.trace.trace)
	}
	if o.html.file != nil {
		all = append(all, &o.threads)
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

func isHTML(path string) bool {
	extension := strings.ToLower(filepath.Ext(path))
	return extension == ".html" || extension == ".htm"
}

func (o *outputs) discard() {
	o.report.discard()
	o.html.discard()
	o.trace.discard()
}

// save writes all files. It returns what went wrong.
func (o *outputs) save(d document, p pictured) (failed []error) {
	failed = append(failed, o.report.save(d), o.trace.save(p.whole, p.windows))
	if o.html.file == nil {
		return failed
	}
	var text bytes.Buffer
	if err := page.Write(&text, p.data(d.Problems, &o.threads)); err != nil {
		return append(failed, err)
	}
	return append(failed, o.html.saveText(text.Bytes(), ".html"))
}

// pictured is what the page shows.
type pictured struct {
	title   string
	facts   []page.Fact
	monitor *monitor.Monitor
	whole   *window.Report // nil if the windows have nothing in common
	windows []*window.Report
}

func (p pictured) data(problems []string, threads *page.Threads) *page.Data {
	d := &page.Data{Title: p.title, Facts: p.facts, Windows: []page.Window{}, Problems: problems}
	reports := p.windows
	if p.whole != nil {
		reports = append(slices.Clone(reports), p.whole)
	}
	if len(reports) == 0 {
		return d
	}
	first := slices.MinFunc(reports, func(a, b *window.Report) int { return cmp.Compare(a.Start.Mono, b.Start.Mono) })
	last := slices.MaxFunc(reports, func(a, b *window.Report) int { return cmp.Compare(a.End.Mono, b.End.Mono) })
	origin, end := first.Start.Mono, last.End.Mono
	d.Origin, d.Duration = first.Start.Wall, (end - origin).Seconds()
	if p.whole != nil {
		whole := page.NewWindow(p.whole, origin)
		d.Run = &whole
	}
	for _, r := range p.windows {
		d.Windows = append(d.Windows, page.NewWindow(r, origin))
	}
	d.Curves = page.NewCurves(p.monitor.History(), page.CeilingsOf(reports), origin, end)
	threads.AddTo(&d.Curves, origin)
	return d
}

// host is the name of this machine, for the head of a page.
func host() []page.Fact {
	name, err := os.Hostname()
	if err != nil {
		return nil
	}
	return []page.Fact{{Name: "host", Value: name}}
}
