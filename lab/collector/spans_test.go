package collector

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emulate"
)

const mib = 1 << 20

// coldFiles returns files on a real disk that are in no cache of this machine.
func coldFiles(t *testing.T, bytes int64) *emulate.Files {
	t.Helper()
	files, err := emulate.Prepare(t.Context(), "", emulate.Options{Bytes: bytes})
	if cached := new(emulate.StillCachedError); errors.As(err, &cached) {
		t.Skip("cannot remove a file from the page cache here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	if files.FileSystem().Remote {
		t.Skipf("%s is on no disk of this machine", files.FileSystem().Name)
	}
	return files
}

// load reads the cold model within a span. Before and after the read it sleeps for more than a sampling interval, so
// that all bytes of the read belong to the span for certain.
func load(t *testing.T, tracer trace.Tracer, files *emulate.Files, name string, say ...attribute.KeyValue) {
	t.Helper()
	if err := files.Cold(); err != nil {
		t.Fatal(err)
	}
	ctx, span := tracer.Start(context.Background(), name, trace.WithAttributes(say...))
	defer span.End()
	time.Sleep(250 * time.Millisecond)
	if err := emulate.Load(ctx, files); err != nil {
		t.Fatal(err)
	}
	time.Sleep(250 * time.Millisecond)
}

// A span of a program gets the attributes that explain its time.
func TestSpanOfAColdRead(t *testing.T) {
	c := prepare(t, "--config", "../../examples/collector/file.yaml").start()
	files := coldFiles(t, 512*mib) // the model is a quarter of them
	load(t, tracer(t, c.otlp, here(t)...), files, "load of weights",
		attribute.String("stallspan.window.kind", "model_load"), attribute.String("file.path", files.Model()))

	s := c.find("load of weights")
	read, size := s.Attributes.number("stallspan.disk.read.bytes"), float64(files.ModelBytes())
	if read < 0.99*size || read > 1.5*size { // other reads of this machine count, too
		t.Errorf("bytes read from disk: got %v, want 0.99 to 1.5 times %v", read, size)
	}
	for key, want := range map[string]any{
		"stallspan.window.kind": "model_load", "stallspan.window.source": "span", "file.path": files.Model(),
	} {
		if got := s.Attributes[key]; got != want {
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
	}
	if s.Attributes["stallspan.verdict"] == nil || s.Attributes["stallspan.finding"] == nil {
		t.Errorf("attributes: got %v, want a verdict and a finding", s.Attributes)
	}
	whole := s.Attributes.number("stallspan.process.on_cpu.time") + s.Attributes.number("stallspan.window.gpu.busy.time") +
		s.Attributes.number("stallspan.stall.storage.time") + s.Attributes.number("stallspan.stall.cpu.time") +
		s.Attributes.number("stallspan.stall.other.time")
	if took := s.seconds(t); whole < 0.98*took || whole > 1.02*took {
		t.Errorf("sum of the parts: got %v s, want the %v s of the span: %v", whole, took, s.Attributes)
	}
	if s.scope != "a-library" || s.Status.Code != 0 {
		t.Errorf("got scope %q and status %d, want those of the program", s.scope, s.Status.Code)
	}
	for _, child := range c.children(s) {
		if child.scope == s.scope {
			t.Errorf("scope of child %s: got that of the program, want that of Stallspan", child.Name)
		}
	}
	c.stop()
}

// A default condition recognizes a model load by the name of its span.
func TestSpanByItsName(t *testing.T) {
	c := prepare(t, "--config", "../../examples/collector/file.yaml").start()
	load(t, tracer(t, c.otlp, here(t)...), coldFiles(t, 128*mib), "model.load", attribute.String("model.id", "resnet50"))
	s := c.find("model.load")
	if s.Attributes["stallspan.window.kind"] != "model_load" || s.Attributes["stallspan.model.name"] != "resnet50" {
		t.Errorf("attributes: got %v, want a model_load of resnet50", s.Attributes)
	}
	c.stop()
}

// Spans that the history of this machine cannot explain pass unchanged.
func TestSpansThatPassUntouched(t *testing.T) {
	c := prepare(t, "--config", "../../examples/collector/file.yaml").start()
	kind := attribute.String("stallspan.window.kind", "epoch")
	ours, theirs := tracer(t, c.otlp, here(t)...), tracer(t, c.otlp, attribute.String("host.name", "another-machine"))
	for name, start := range map[string]func() trace.Span{
		"other host":   func() trace.Span { return began(theirs, "other host", kind) },
		"no condition": func() trace.Span { return began(ours, "no condition") },
		"already judged": func() trace.Span {
			return began(ours, "already judged", kind, attribute.String("stallspan.verdict", "gpu_bound"))
		},
	} {
		start().End()
		s := c.find(name)
		for key := range s.Attributes {
			if key != "stallspan.window.kind" && key != "stallspan.verdict" {
				t.Errorf("%s: got the attribute %s, want no new one", name, key)
			}
		}
		if len(s.Events) > 0 || len(c.children(s)) > 0 {
			t.Errorf("%s: got events %v and %d children, want none", name, s.Events, len(c.children(s)))
		}
	}
	c.stop()
}

func began(tracer trace.Tracer, name string, say ...attribute.KeyValue) trace.Span {
	_, span := tracer.Start(context.Background(), name, trace.WithAttributes(say...))
	return span
}

// The first example of docs/collector.md works.
func TestExampleProgram(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3, for the example")
	}
	c := prepare(t, "--config", "../../examples/collector/file.yaml").start()
	program := exec.CommandContext(t.Context(), python, "../../examples/collector/epochs.py",
		coldFiles(t, 128*mib).Model(), "2000")
	program.Env = append(os.Environ(), "OTLP_HTTP="+c.http)
	if out, err := program.CombinedOutput(); err != nil {
		t.Fatalf("epochs.py: got %v, want no error: %s", err, out)
	}
	s := c.find("epoch 2")
	if s.Attributes["stallspan.verdict"] == nil || s.Attributes["stallspan.training.epoch.index"] != int64(2) {
		t.Errorf("attributes: got %v, want a verdict and epoch 2", s.Attributes)
	}
	if got := s.Attributes["stallspan.window.scope"]; got != "process" {
		t.Errorf("scope of the third span of a process: got %v, want process", got)
	}
	c.stop()
}
