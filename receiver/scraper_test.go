//go:build linux && (amd64 || arm64)

package receiver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/filter"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/scraper/scrapererror"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

var update = flag.Bool("update", false, "write the golden files")

// text shows metrics, without times, one series a line, in an order of their own.
func text(all pmetric.Metrics) string {
	var lines []string
	for _, r := range all.ResourceMetrics().All() {
		lines = append(lines, "resource "+keys(r.Resource().Attributes()))
		for _, s := range r.ScopeMetrics().All() {
			lines = append(lines, fmt.Sprintf("scope %s %s, schema %s", s.Scope().Name(), s.Scope().Version(), s.SchemaUrl()))
			for _, m := range s.Metrics().All() {
				var points pmetric.NumberDataPointSlice
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					points = m.Gauge().DataPoints()
				case pmetric.MetricTypeSum:
					points = m.Sum().DataPoints()
				default:
					continue
				}
				for _, p := range points.All() {
					value := fmt.Sprint(p.DoubleValue())
					if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
						value = fmt.Sprint(p.IntValue())
					}
					lines = append(lines, fmt.Sprintf("%s %s %v = %s %s", m.Name(), m.Type(), attributes(p.Attributes()), value,
						m.Unit()))
				}
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

func attributes(m pcommon.Map) string {
	var all []string
	for k, v := range m.All() {
		all = append(all, k+"="+v.AsString())
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

func keys(m pcommon.Map) string {
	var all []string
	for k := range m.All() {
		all = append(all, k)
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

// counts are what depends on the machine and on other tests.
var counts = regexp.MustCompile(`(stallspan\.(?:panics|reading\.late|kernel\.part\.refused) .*) = \d+`)

// first is what a receiver scrapes first: nothing that is a difference.
func first(t *testing.T, c *Config) pmetric.Metrics {
	p := in(t, NewFactory(), settings(), c, "metrics")
	p.start(t)
	eventually(t, "metrics", func() bool { return len(p.AllMetrics()) > 0 })
	return p.AllMetrics()[0]
}

func TestMetrics(t *testing.T) {
	c := laboratory(t)
	fixture.Write(t, c.Sampling.RootPath, "etc/machine-id", []byte("0123456789abcdef0123456789abcdef\n"))
	fixture.Write(t, c.Sampling.RootPath, "etc/hostname", []byte("server\n"))
	got := counts.ReplaceAllString(text(first(t, c)), "$1 = N")
	golden := filepath.Join("testdata", "metrics.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("run with -update if this is right:\n%s", got)
	}
}

// A receiver of metrics alone opens no socket.
func TestNoSocket(t *testing.T) {
	c := laboratory(t)
	first(t, c)
	if _, err := os.Stat(c.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestChoice(t *testing.T) {
	c := laboratory(t)
	c.Metrics = config.Metrics{"system.disk.io": {Enabled: new(bool)}, "system.cpu.time": {Enabled: new(bool)},
		"system.disk.merged": {}}
	c.Disks.Exclude = []filter.Config{{Regex: "p[0-9]+$"}}
	got := text(first(t, c))
	for word, want := range map[string]bool{
		"system.disk.io ": false, "system.cpu.time ": false, "system.disk.merged ": true, "system.disk.operations ": true,
		"=nvme0n1": true, "=nvme0n1p1": false,
	} {
		if strings.Contains(got, word) != want {
			t.Errorf("%q in the metrics: got %v, want %v\n%s", word, !want, want, got)
		}
	}
	for _, test := range []struct {
		include, exclude string
		names            []string
		takes            bool
	}{
		{"", "", []string{"sda"}, true},
		{"nvme", "", []string{"sda"}, false},
		{"nvme", "", []string{"nvme0n1"}, true},
		{"nvme", "n1p1$", []string{"nvme0n1p1"}, false},
		{"", "^1$", []string{"GPU-1", "NVIDIA H200", "1"}, false},
		{"H200", "", []string{"GPU-1", "NVIDIA H200", "1"}, true},
		{"H100", "", []string{"GPU-1", "NVIDIA H200", "1"}, false},
	} {
		var f FilterConfig
		if test.include != "" {
			f.Include = []filter.Config{{Regex: test.include}}
		}
		if test.exclude != "" {
			f.Exclude = []filter.Config{{Regex: test.exclude}}
		}
		if got := f.compile().includes(test.names...); got != test.takes {
			t.Errorf("%+v: got %v, want %v", test, got, test.takes)
		}
	}
}

// Each maker's GPUs are counted from 0.
func TestChoiceOfAMaker(t *testing.T) {
	for strict, want := range map[string][2]bool{"0": {false, false}, "GPU 0": {false, true}, "AMD GPU 0": {true, false}} {
		f := deviceFilter{gpus: FilterConfig{Exclude: []filter.Config{{Strict: strict}}}.compile()}
		got := [2]bool{f.includesGPU(&sample.GPU{ID: "GPU-a"}), f.includesGPU(&sample.GPU{ID: "GPU-b", Vendor: "AMD"})}
		if got != want {
			t.Errorf("without %q: got %v, want NVIDIA's and AMD's %v", strict, got, want)
		}
	}
}

// A panic while metrics are made is an error of that scrape.
func TestPanicOfAScrape(t *testing.T) {
	w := newReceiver(settings(), laboratory(t))
	if err := w.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Shutdown(t.Context()) }()
	works := w.metrics
	w.metrics = nil
	if m, err := w.scrape(t.Context()); err == nil || m.DataPointCount() != 0 {
		t.Errorf("got %d points, %v; want an error", m.DataPointCount(), err)
	}
	w.metrics = works
	w.spans = newOutput("spans", w.settings.Logger, func(context.Context, []endedSpan) error { return nil })
	w.spans.push(endedSpan{}, 2*maxQueueBytes) // and is lost
	before := sample.Panics()
	if m, err := w.scrape(t.Context()); err != nil || m.DataPointCount() == 0 {
		t.Errorf("the next scrape: got %d points, %v; want all metrics", m.DataPointCount(), err)
	} else {
		for _, want := range []string{fmt.Sprintf("panics Sum  = %d {panic}", before), "export.dropped Sum  = 1 {item}"} {
			if got := text(m); before == 0 || !strings.Contains(got, "stallspan."+want) {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
	w.spans = nil
}

// When a source fails, the metrics of the others are complete, and its own are the last ones.
func TestPartialFailure(t *testing.T) {
	c := laboratory(t)
	w := newReceiver(settings(), c)
	if err := w.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Shutdown(t.Context()) }()
	if _, err := w.scrape(t.Context()); err != nil {
		t.Fatal(err)
	}
	fixture.Write(t, c.Sampling.RootPath, "proc/diskstats", []byte("no table of disks\n"))
	eventually(t, "the failure", func() bool { return w.monitor.Failures()["disk"].Count > 0 })
	m, err := w.scrape(t.Context())
	var partial scrapererror.PartialScrapeError
	if !errors.As(err, &partial) || partial.Failed != 1 || !strings.HasPrefix(err.Error(), "disk, ") {
		t.Errorf("scrape: got %v, want a partial error of the disks", err)
	}
	for _, name := range []string{"system.cpu.time", "system.disk.io"} {
		if !strings.Contains(text(m), name+" ") {
			t.Errorf("no %s", name)
		}
	}
	if err := w.newFailures(map[string]monitor.Failure{"history": {Count: 5, Last: errors.New("full")}}); err != nil {
		t.Errorf("the history's want of room is no failed scrape: %v", err)
	}
}

// A source that the machine lacks is logged once. It does not make each scrape a partial one.
func TestLacking(t *testing.T) {
	c := laboratory(t)
	if err := os.RemoveAll(filepath.Join(c.Sampling.RootPath, "proc/pressure")); err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.WarnLevel)
	set := settings()
	set.Logger = zap.New(core)
	w := newReceiver(set, c)
	if err := w.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Shutdown(t.Context()) }()
	for range 3 {
		time.Sleep(2 * c.Sampling.Interval)
		if _, err := w.scrape(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := w.monitor.Failures()["pressure"].Count; n != 1 {
		t.Errorf("%d failed readings", n)
	}
	warnings := logs.FilterMessage("a source cannot be read").All()
	if len(warnings) != 1 || !strings.Contains(warnings[0].ContextMap()["error"].(string), "psi=1") {
		t.Errorf("log: got %v, want one warning about psi=1", logs.All())
	}

	fails := func(count uint64, why string) error {
		return w.newFailures(map[string]monitor.Failure{"disk": {Count: count, Last: errors.New(why)}})
	}
	if fails(10, "a reason") == nil || fails(20, "a reason") != nil || fails(30, "another reason") == nil {
		t.Error("second scrape with the same reason: got an error, want none")
	}
	if fails(30, "another reason") != nil || fails(40, "another reason") == nil {
		t.Error("a source that worked and fails again")
	}
}
