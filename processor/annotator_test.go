//go:build linux && (amd64 || arm64)

package processor

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/window"
)

func TestGolden(t *testing.T) {
	for _, name := range []string{"gpu", "accelerator", "cpu_only"} {
		t.Run(name, func(t *testing.T) {
			p := replayed(t, name+".jsonl.gz")
			at := func(s float64) time.Time { return p.from.Add(time.Duration(s * float64(time.Second))) }
			traces, to := batch()
			put(to, "Load model", at(1), at(4), map[string]any{"stallspan.model.name": "llama", "file.path": "/models/llama"})
			put(to, "model.load", at(1.5), at(4.5), map[string]any{"model.id": "yolo/3"})
			put(to, "train_epoch_3", at(1), at(5), map[string]any{"stallspan.training.run.name": "night"})
			put(to, "anything", at(2), at(3), map[string]any{"stallspan.window.kind": "checkpoint",
				"stallspan.window.name": "step 100"})
			put(to, "warm up", at(2), at(3), map[string]any{"stallspan.window.kind": "custom"})
			put(to, "GET /", at(1), at(4), nil)
			a := fresh(t, p.Monitor)
			a.show.SlowStatus = config.StatusError
			if got := a.annotate(traces); got.annotated != 5 {
				t.Errorf("tally: got %+v, want 5 annotated spans", got)
			}
			checkText(t, name, text(traces, p.from))
		})
	}
}

// A trace in the form in which Megatron-LM sends it, with its child spans, and one that the trainer's end cut short.
func TestMegatron(t *testing.T) {
	p := replayed(t, "gpu.jsonl.gz")
	at := func(s float64) time.Time { return p.from.Add(time.Duration(s * float64(time.Second))) }
	traces, to := batch()
	resource := map[string]any{"service.name": "megatron", "nemo.run.id": "llm-7", "nv.dl.rank": 0, "slurm.job.id": "77"}
	if err := traces.ResourceSpans().At(0).Resource().Attributes().FromRaw(resource); err != nil {
		t.Fatal(err)
	}
	put(to, "megatron.pretrain", at(0.5), at(6), nil)
	load := put(to, "megatron.load_checkpoint", at(1), at(2), nil)
	put(to, "megatron.load_checkpoint.io_read", at(1), at(1.8), nil).SetParentSpanID(load.SpanID())
	put(to, "megatron.train_step", at(2), at(3), map[string]any{"megatron.iteration": 1})
	put(to, "nv.dl.training.iteration", at(3), at(4), map[string]any{"nv.dl.training.step": 2})
	save := put(to, "megatron.save_checkpoint", at(4), at(5), map[string]any{"megatron.iteration": 2})
	put(to, "megatron.save_checkpoint.io_write", at(4.2), at(5), nil).SetParentSpanID(save.SpanID())
	put(to, "megatron.train_step", at(5), at(6), map[string]any{"megatron.iteration": 3, "nemo.span.truncated": true})
	if got := fresh(t, p.Monitor).annotate(traces); got.annotated != 7 {
		t.Errorf("tally: got %+v, want 7 annotated spans", got)
	}
	checkText(t, "megatron", text(traces, p.from))
}

// Spans that are not annotated are as they were, and are counted.
func TestSkipped(t *testing.T) {
	p := replayed(t, "gpu.jsonl.gz")
	start, end := p.from.Add(time.Second), p.to.Add(-time.Second)
	const load = "model.load"
	for _, c := range []struct {
		name, span string
		start, end time.Time
		attrs      map[string]any
		reason     string
		otherwise  tally
		afterYear  bool
	}{
		{name: "backward", span: load, start: end, end: start, reason: "backward"},
		{name: "empty", span: load, start: start, end: start, reason: "empty"},
		{name: "future", span: load, start: start, end: end.AddDate(1, 0, 0), reason: "future"},
		{name: "far future", span: load, start: start, afterYear: true, reason: "future"},
		{name: "a week long", span: load, start: end.AddDate(0, 0, -7), end: end, reason: "old"},
		{name: "before what is kept", span: load, start: start.Add(-time.Hour), end: start.Add(-time.Hour + time.Second),
			reason: "old"},
		{name: "no start", span: load, start: time.Unix(0, 0), end: end, reason: "old"},
		{name: "no end", span: load, start: start, end: time.Unix(0, 0), reason: "backward"},
		{name: "no times", span: load, start: time.Unix(0, 0), end: time.Unix(0, 0), reason: "empty"},
		{name: "another name", span: "GET /", start: start, end: end},
		{name: "an invalid kind", span: "GET /", start: start, end: end,
			attrs:     map[string]any{"stallspan.window.kind": "lod"},
			otherwise: tally{ignored: map[attribute.Key]int64{"stallspan.window.kind": 1}}},
		{name: "a kind of a wrong type", span: "GET /", start: start, end: end,
			attrs:     map[string]any{"stallspan.window.kind": 1},
			otherwise: tally{ignored: map[attribute.Key]int64{"stallspan.window.kind": 1}}},
		{name: "annotated already", span: load, start: start, end: end, attrs: map[string]any{"stallspan.verdict": "mixed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			traces, to := batch()
			span := put(to, c.span, c.start, c.end, c.attrs)
			if c.afterYear {
				span.SetEndTimestamp(math.MaxUint64)
			}
			before := ptrace.NewTraces()
			traces.CopyTo(before)
			want := c.otherwise
			if c.reason != "" {
				want.skip(c.reason)
			}
			if got := fresh(t, p.Monitor).annotate(traces); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("counted %+v, not %+v", got, want)
			}
			if got, want := text(traces, p.from), text(before, p.from); got != want {
				t.Errorf("%s\nbecame\n%s", want, got)
			}
		})
	}
}

// What the user set stays.
func TestKept(t *testing.T) {
	p := replayed(t, "gpu.jsonl.gz")
	traces, to := batch()
	attrs := map[string]any{
		"stallspan.window.kind": "lod", "stallspan.slow": "perhaps", "stallspan.finding": int64(7),
		"own":               []any{"a", int64(1)},
		"stallspan.gpu.ids": "GPU-1", "process.pid": "12x", "stallspan.window.source": "mine",
	}
	span := put(to, "model.load", p.from.Add(time.Second), p.to, attrs)
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Status().SetMessage("out of memory")
	a := fresh(t, p.Monitor)
	a.show.SlowStatus = config.StatusError
	got := a.annotate(traces)
	if got.annotated != 1 || got.ignored["stallspan.gpu.ids"] != 1 || got.ignored["process.pid"] != 0 {
		t.Errorf("tally: got %+v, want 1 annotated span and one ignored attribute", got)
	}
	for key, want := range attrs {
		if v, _ := span.Attributes().Get(key); fmt.Sprint(v.AsRaw()) != fmt.Sprint(want) {
			t.Errorf("%s: %v became %v", key, want, v.AsRaw())
		}
	}
	if _, ok := span.Attributes().Get("stallspan.verdict"); !ok || span.Status().Message() != "out of memory" {
		t.Errorf("got %s, want a verdict and the status of the program", text(traces, p.from))
	}
}

// The span's own word counts before its resource's, and each resource has its own children.
func TestResources(t *testing.T) {
	p := replayed(t, "gpu.jsonl.gz")
	traces := ptrace.NewTraces()
	for range 2 {
		rs := traces.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutEmptySlice("stallspan.gpu.ids").AppendEmpty().SetStr("GPU-of-the-resource")
		for range 2 {
			put(rs.ScopeSpans().AppendEmpty().Spans(), "model.load", p.from.Add(time.Second), p.to, nil)
		}
	}
	one := traces.ResourceSpans().At(1).ScopeSpans().At(1).Spans().At(0)
	one.Attributes().PutEmptySlice("stallspan.gpu.ids").AppendEmpty().SetStr("GPU-of-the-span")
	if got := fresh(t, p.Monitor).annotate(traces); got.annotated != 4 {
		t.Fatalf("tally: got %+v, want 4 annotated spans", got)
	}
	ids := func(rs, ss int) string {
		v, _ := traces.ResourceSpans().At(rs).ScopeSpans().At(ss).Spans().At(0).Attributes().Get("stallspan.gpu.ids")
		return v.AsString()
	}
	if ids(0, 0) != `["GPU-of-the-resource"]` || ids(1, 1) != `["GPU-of-the-span"]` {
		t.Errorf("%s and %s", ids(0, 0), ids(1, 1))
	}
}

// Children belong to the span and are in a scope of our own; a second pass changes nothing.
func TestChildren(t *testing.T) {
	p := replayed(t, "cpu_only.jsonl.gz")
	traces, to := batch()
	span := put(to, "epoch", p.from.Add(time.Second), p.to, nil)
	a := fresh(t, p.Monitor)
	a.annotate(traces)
	rs := traces.ResourceSpans().At(0)
	if rs.ScopeSpans().Len() != 2 {
		t.Fatalf("no children, and the test needs some:\n%s", text(traces, p.from))
	}
	own := rs.ScopeSpans().At(1)
	if own.Scope().Name() != emit.ScopeName || own.Scope().Version() != "test" || own.SchemaUrl() == "" {
		t.Errorf("got %s, want a scope of our own", text(traces, p.from))
	}
	for _, child := range own.Spans().All() {
		if child.TraceID() != span.TraceID() || child.ParentSpanID() != span.SpanID() || child.SpanID().IsEmpty() ||
			child.StartTimestamp() < span.StartTimestamp() || child.EndTimestamp() > span.EndTimestamp() {
			t.Errorf("got %s, want children below the span and within its time", text(traces, p.from))
		}
	}
	before := text(traces, p.from)
	every, err := parse([]string{"true"})
	if err != nil {
		t.Fatal(err)
	}
	a.conditions = every
	if got := a.annotate(traces); got.annotated != 0 || text(traces, p.from) != before {
		t.Errorf("second run: got %+v and\n%s\nwant no change", got, text(traces, p.from))
	}
}

// A fault of ours loses no span. This annotator has no monitor, so that it fails on each span that it reports on.
func TestPanic(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	a := fresh(t, nil)
	a.log = zap.New(core)
	traces, to := batch()
	for range 3 {
		put(to, "model.load", time.Now(), time.Now().Add(time.Second), nil)
		put(to, "GET /", time.Now(), time.Now().Add(time.Second), nil)
	}
	before := text(traces, time.Now().Truncate(time.Hour))
	if got := a.annotate(traces); got.skipped[failed] != 3 || text(traces, time.Now().Truncate(time.Hour)) != before {
		t.Errorf("tally: got %+v, want 3 failed spans, all unchanged", got)
	}
	if logs.Len() != 1 || !strings.Contains(fmt.Sprint(logs.All()[0].ContextMap()["stack"]), "annotator.go") {
		t.Errorf("log: got %d lines, want one with a stack", logs.Len())
	}
}

// A condition that fails on a span is not met, and the next one is configured.
func TestFailingCondition(t *testing.T) {
	p := replayed(t, "gpu.jsonl.gz")
	for _, silent := range []bool{false, true} {
		core, logs := observer.New(zap.WarnLevel)
		a := fresh(t, p.Monitor)
		a.log, a.silent = zap.New(core), silent
		var err error
		if a.conditions, err = parse([]string{`Int(attributes["a"]["b"]) > 1`, `name == "mine"`}); err != nil {
			t.Fatal(err)
		}
		traces, to := batch()
		for range 2 {
			put(to, "mine", p.from.Add(time.Second), p.to, map[string]any{"a": "text"})
		}
		put(to, "other", p.from.Add(time.Second), p.to, map[string]any{"a": "text"})
		got := a.annotate(traces)
		if got.annotated != 2 || got.conditions != 3 {
			t.Errorf("tally: got %+v, want 2 annotated spans and 3 failed conditions", got)
		}
		if want := map[bool]int{false: 1, true: 0}[silent]; logs.Len() != want {
			t.Errorf("silent %v: logged %v", silent, logs.All())
		}
		if v, _ := to.At(0).Attributes().Get("stallspan.window.kind"); v.Str() != "custom" {
			t.Errorf("kind %q", v.Str())
		}
	}
}

func TestConcurrently(t *testing.T) {
	p := replayed(t, "gpu.jsonl.gz")
	a := fresh(t, p.Monitor)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				traces, to := batch()
				for range 5 {
					put(to, "model.load", p.from.Add(time.Second), p.to, map[string]any{"process.pid": "17"})
					put(to, "GET /", p.from, p.to, nil)
				}
				if got := a.annotate(traces); got.annotated != 5 {
					t.Errorf("tally: got %+v, want 5 annotated spans", got)
				}
			}
		})
	}
	all.Wait()
}

// What a span claims about its process and container is not believed, only what its resource says.
func TestClaims(t *testing.T) {
	own, other := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	traces, to := batch()
	rs := traces.ResourceSpans().At(0)
	put(to, "model.load", time.Unix(1, 0), time.Unix(2, 0), map[string]any{
		"process.pid": 1, "container.id": other, "host.name": "x", "k8s.node.name": "y", "k8s.namespace.name": "victim",
	})
	a := fresh(t, replayed(t, "gpu.jsonl.gz").Monitor)
	var counted tally
	p := &pass{annotator: a, tally: &counted, resource: rs}
	if got := p.origin(); got != (locate.Who{}) {
		t.Errorf("without a resource: got %+v, want nothing", got)
	}
	for owner, want := range map[string]string{"": "spans of root", "uid 1000": "spans of uid 1000"} {
		if got := p.client(owner); got != want { // the owner's own windows have other baselines: a span is a claim
			t.Errorf("without a resource: got the baselines of %q, want %q", got, want)
		}
	}
	resource := rs.Resource().Attributes()
	resource.PutStr("container.id", own)
	resource.PutInt("process.pid", 7)
	resource.PutStr("k8s.namespace.name", "ours")
	p = &pass{annotator: a, tally: &counted, resource: rs}
	if got, want := p.origin(), (locate.Who{ContainerID: own, PID: 7}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := p.client("an owner"); got != "namespace ours" {
		t.Errorf("got the baselines of %q, want those of the namespace", got)
	}
}

// A span of another host is left alone.
func TestForeign(t *testing.T) {
	p := replayed(t, "gpu.jsonl.gz")
	for _, c := range []struct {
		attrs map[string]any
		local bool
	}{
		{nil, true},
		{map[string]any{"service.name": "x"}, true},
		{map[string]any{"k8s.node.name": "node-1", "host.name": "pod-7"}, true},
		{map[string]any{"k8s.node.name": "node-2"}, false},
		{map[string]any{"host.name": "there is no such host"}, false},
		{map[string]any{"container.id": strings.Repeat("ab", 32)}, false},
	} {
		a := fresh(t, p.Monitor)
		a.locator = locate.New("", "node-1", false)
		traces, to := batch()
		put(to, "model.load", p.from.Add(time.Second), p.to, nil)
		if err := traces.ResourceSpans().At(0).Resource().Attributes().FromRaw(c.attrs); err != nil {
			t.Fatal(err)
		}
		before := text(traces, p.from)
		got := a.annotate(traces)
		if (got.annotated == 1) != c.local || (got.foreign == 1) == c.local || (text(traces, p.from) == before) == c.local {
			t.Errorf("%v: got %+v, want it local: %v", c.attrs, got, c.local)
		}
	}
}

// A span that is slow says when it began to be, and is an error only where that was configured for.
func TestSlow(t *testing.T) {
	m := machine(t, 1, 2)
	for _, configured := range []bool{false, true} {
		traces, to := batch()
		span := put(to, "model.load", dawn.Add(11*time.Second), dawn.Add(12*time.Second), nil)
		a := fresh(t, m)
		if configured {
			a.show.SlowStatus = config.StatusError
		}
		a.annotate(traces)
		if v, _ := span.Attributes().Get("stallspan.slow"); !v.Bool() {
			t.Fatalf("it is not slow, and the test needs one that is:\n%s", text(traces, dawn))
		}
		if span.Events().Len() != 1 || span.Events().At(0).Name() != "stallspan.window.slow" {
			t.Errorf("no event: %s", text(traces, dawn))
		}
		finding, _ := span.Attributes().Get("stallspan.finding")
		want, message := ptrace.StatusCodeUnset, ""
		if configured {
			want, message = ptrace.StatusCodeError, finding.Str()
		}
		if span.Status().Code() != want || span.Status().Message() != message {
			t.Errorf("configured %v: %s", configured, text(traces, dawn))
		}
	}
}

// What was slow is shown once: on the innermost span of its kind, in whichever batch and scope its parents come.
func TestNested(t *testing.T) {
	m := machine(t, 1, 2)
	for _, batches := range []int{1, 2} {
		a := fresh(t, m)
		traces, to := batch()
		at := func(s float64) time.Time { return dawn.Add(time.Duration(s * float64(time.Second))) }
		epoch := put(to, "epoch 1", at(11), at(12), nil)
		load := put(to, "megatron.load_checkpoint", at(11), at(12), nil)
		load.SetParentSpanID(epoch.SpanID())
		other, inner := traces, traces.ResourceSpans().At(0).ScopeSpans().AppendEmpty().Spans()
		if batches == 2 {
			other, inner = batch()
		}
		read := put(inner, "megatron.load_checkpoint.io_read", at(11.1), at(12), nil)
		read.SetSpanID([8]byte{7})
		read.SetParentSpanID(load.SpanID())
		a.annotate(other)
		a.annotate(traces)
		for _, c := range []struct {
			ptrace.Span
			events int
		}{{read, 1}, {load, 0}, {epoch, 1}} {
			if slow, _ := c.Attributes().Get("stallspan.slow"); !slow.Bool() || c.Events().Len() != c.events {
				t.Errorf("%d batches, %s: got slow %v and %d events, want true and %d\n%s", batches, c.Name(), slow.Bool(),
					c.Events().Len(), c.events, text(traces, dawn))
			}
		}
		stalls := 0
		for _, rs := range []ptrace.ResourceSpans{traces.ResourceSpans().At(0), other.ResourceSpans().At(0)}[:batches] {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					if span.ParentSpanID() == load.SpanID() && ss.Scope().Name() == emit.ScopeName {
						stalls++
					}
				}
			}
		}
		if stalls > 0 {
			t.Errorf("%d batches: got %d stalls below the load, want all below its io_read", batches, stalls)
		}
	}
}

// What is remembered of spans without a parent's batch is bounded.
func TestNestedIsBounded(t *testing.T) {
	var n nested
	span := ptrace.NewSpan()
	for i := range 5 * maxNested {
		span.SetParentSpanID([8]byte{byte(i), byte(i >> 8), byte(i >> 16), 1})
		n.once(window.ModelLoad, span, &emit.Span{Events: make([]emit.Event, 1)})
	}
	if len(n.young)+len(n.older) > 2*maxNested {
		t.Errorf("spans remembered: got %d, want at most %d", len(n.young)+len(n.older), 2*maxNested)
	}
}
