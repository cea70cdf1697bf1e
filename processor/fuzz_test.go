//go:build linux && (amd64 || arm64)

package processor

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
)

// Whatever spans there are, none is lost, none loses or changes an attribute, and all but ours stay where they are.
func FuzzAnnotate(f *testing.F) {
	p := replayed(f, "gpu.jsonl.gz")
	every, err := parse([]string{`attributes["any"] != nil`, `IsMatch(name, "e")`})
	if err != nil {
		f.Fatal(err)
	}
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		traces := arbitrary(r, p)
		before := ptrace.NewTraces()
		traces.CopyTo(before)
		a := fresh(t, p.Monitor)
		if r.IntN(2) == 0 {
			a.show.SlowStatus = config.StatusError
		}
		if r.IntN(2) == 0 {
			a.conditions = every
		}
		got := a.annotate(traces)
		own := compare(t, before, traces)
		if want := before.SpanCount() + own; traces.SpanCount() != want {
			t.Errorf("%d spans became %d", want, traces.SpanCount())
		}
		if got.skipped[failed] != 0 {
			t.Errorf("tally: got %+v, want no failed span", got)
		}
	})
}

// compare looks for what was lost between two batches, and gives the number of spans in scopes that were added.
func compare(t *testing.T, before, after ptrace.Traces) (own int) {
	if before.ResourceSpans().Len() != after.ResourceSpans().Len() {
		t.Fatalf("%d resources", after.ResourceSpans().Len())
	}
	for i, was := range before.ResourceSpans().All() {
		is := after.ResourceSpans().At(i)
		if !was.Resource().Attributes().Equal(is.Resource().Attributes()) {
			t.Errorf("the resource's attributes were changed")
		}
		for j, ss := range was.ScopeSpans().All() {
			for k, span := range ss.Spans().All() {
				same(t, span, is.ScopeSpans().At(j).Spans().At(k))
			}
		}
		for j := was.ScopeSpans().Len(); j < is.ScopeSpans().Len(); j++ {
			if is.ScopeSpans().At(j).Scope().Name() != emit.ScopeName {
				t.Errorf("a scope %q came from somewhere", is.ScopeSpans().At(j).Scope().Name())
			}
			own += is.ScopeSpans().At(j).Spans().Len()
		}
	}
	return own
}

// same says what a span lost, or changed in a way that it must not.
func same(t *testing.T, was, is ptrace.Span) {
	if was.SpanID() != is.SpanID() || was.TraceID() != is.TraceID() || was.Name() != is.Name() ||
		was.StartTimestamp() != is.StartTimestamp() || was.EndTimestamp() != is.EndTimestamp() ||
		is.Events().Len() < was.Events().Len() {
		t.Errorf("%q became %q", was.Name(), is.Name())
	}
	for key, v := range was.Attributes().All() {
		if now, ok := is.Attributes().Get(key); !ok || !now.Equal(v) {
			t.Errorf("%s: %s was lost", key, v.AsString())
		}
	}
	_, done := was.Attributes().Get("stallspan.verdict")
	if done && was.Attributes().Len() != is.Attributes().Len() {
		t.Errorf("%q was annotated twice", was.Name())
	}
}

var (
	someNames = []string{"model.load", "epoch 3", "GET /", "Loading (GPU)", "", "\xff\xfe", "load \xff", "train_epoch"}
	someKeys  = []string{
		"stallspan.window.kind", "stallspan.window.name", "stallspan.gpu.ids", "process.pid", "container.id", "host.name", "host.id",
		"k8s.node.name", "stallspan.verdict", "stallspan.slow", "stallspan.model.name", "file.path", "any", "", "model.id",
		"stallspan.training.epoch.index", "stallspan.training.run.name",
	}
	someValues = []any{
		"custom", "epoch", "model_load", "x", "12", "-3", "\xff", "", 1, -1, int64(1) << 62, 1.5, true, nil, []any{"a", "b"}, []any{1, nil},
		[]any{}, map[string]any{"a": []any{"b"}}, []byte{1, 2},
	}
)

func arbitrary(r *rand.Rand, p past) ptrace.Traces {
	traces := ptrace.NewTraces()
	for range r.IntN(4) {
		rs := traces.ResourceSpans().AppendEmpty()
		arbitraryAttrs(r, rs.Resource().Attributes())
		for range r.IntN(4) {
			ss := rs.ScopeSpans().AppendEmpty()
			ss.Scope().SetName([]string{"", "theirs", emit.ScopeName}[r.IntN(3)])
			for range r.IntN(5) {
				span := ss.Spans().AppendEmpty()
				span.SetName(someNames[r.IntN(len(someNames))])
				span.SetSpanID(pcommon.SpanID{byte(r.Uint32()), 1})
				span.SetStartTimestamp(arbitraryTime(r, p))
				span.SetEndTimestamp(arbitraryTime(r, p))
				span.Status().SetCode(ptrace.StatusCode(r.IntN(4)))
				arbitraryAttrs(r, span.Attributes())
			}
		}
	}
	return traces
}

func arbitraryTime(r *rand.Rand, p past) pcommon.Timestamp {
	if r.IntN(4) == 0 {
		return pcommon.Timestamp(r.Uint64() >> r.IntN(64))
	}
	length := p.to.Sub(p.from) + 2*time.Second // a second before the recording and one after it
	return pcommon.NewTimestampFromTime(p.from.Add(time.Duration(r.Int64N(int64(length))) - time.Second))
}

func arbitraryAttrs(r *rand.Rand, to pcommon.Map) {
	for _, i := range r.Perm(len(someKeys))[:r.IntN(6)] {
		if err := to.PutEmpty(someKeys[i]).FromRaw(someValues[r.IntN(len(someValues))]); err != nil {
			panic(fmt.Sprint("no value: ", err))
		}
	}
}
