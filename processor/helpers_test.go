//go:build linux && (amd64 || arm64)

package processor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/test/fixture"
	"github.com/stallspan/stallspan/test/fixture/tape"
	"github.com/stallspan/stallspan/test/golden"
)

// checkText compares text with testdata/<name>.txt.
func checkText(t *testing.T, name, got string) {
	t.Helper()
	golden.Check(t, filepath.Join("testdata", name+".txt"), []byte(got))
}

// past is a monitor that was fed with a recording, whose readings lie between from and to.
type past struct {
	*monitor.Monitor
	from, to time.Time
}

func replayed(t testing.TB, name string) (p past) {
	t.Helper()
	p.Monitor = tape.Play(t, fixture.File(t, "recordings", name), func(_ *monitor.Monitor, e *recording.Entry) {
		if e.Sample != nil {
			p.to = e.Sample.At.Wall
			if p.from.IsZero() {
				p.from = p.to
			}
		}
	})
	return p
}

// fresh is an annotator with the default conditions that takes every span for one of its host.
func fresh(t testing.TB, m *monitor.Monitor) *annotator {
	t.Helper()
	all, err := parse(DefaultConditions())
	if err != nil {
		t.Fatal(err)
	}
	return &annotator{
		monitor: m, locator: locate.New("", "", true), conditions: all, scope: emit.Scope("test"), log: zap.NewNop(),
	}
}

// batch is a resource with one scope and no span.
func batch() (ptrace.Traces, ptrace.SpanSlice) {
	traces := ptrace.NewTraces()
	ss := traces.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	ss.Scope().SetName("theirs")
	return traces, ss.Spans()
}

// put appends a span.
func put(to ptrace.SpanSlice, name string, from, until time.Time, attrs map[string]any) ptrace.Span {
	span := to.AppendEmpty()
	n := byte(to.Len())
	span.SetTraceID(pcommon.TraceID{1, 2, 3})
	span.SetSpanID(pcommon.SpanID{9, 9, n})
	span.SetName(name)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(from))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(until))
	if err := span.Attributes().FromRaw(attrs); err != nil {
		panic(err)
	}
	return span
}

// text writes a batch for people. Times are since from; the ids of our own spans, which are random, are left out.
func text(traces ptrace.Traces, from time.Time) string {
	var b strings.Builder
	since := func(ts pcommon.Timestamp) time.Duration { return ts.AsTime().Sub(from).Round(time.Microsecond) }
	for _, rs := range traces.ResourceSpans().All() {
		fmt.Fprintf(&b, "resource %v\n", rs.Resource().Attributes().AsRaw())
		for _, ss := range rs.ScopeSpans().All() {
			fmt.Fprintf(&b, "scope %s %s %s\n", ss.Scope().Name(), ss.Scope().Version(), ss.SchemaUrl())
			for _, span := range ss.Spans().All() {
				fmt.Fprintf(&b, "  %s, %v to %v, parent %v, %s", span.Name(), since(span.StartTimestamp()),
					since(span.EndTimestamp()),
					span.ParentSpanID(), span.Status().Code())
				if span.Status().Message() != "" {
					fmt.Fprintf(&b, " %q", span.Status().Message())
				}
				b.WriteString("\n")
				attrText(&b, "    ", span.Attributes())
				for _, e := range span.Events().All() {
					fmt.Fprintf(&b, "    event %s at %v\n", e.Name(), since(e.Timestamp()))
					attrText(&b, "      ", e.Attributes())
				}
			}
		}
	}
	return b.String()
}

func attrText(b *strings.Builder, indent string, attrs pcommon.Map) {
	var lines []string
	for k, v := range attrs.All() {
		lines = append(lines, fmt.Sprintf("%s%s: %s\n", indent, k, v.AsString()))
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, ""))
}
