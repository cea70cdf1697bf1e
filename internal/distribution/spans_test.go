package distribution

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

// coldFiles are real files on a real disk, in none of this machine's caches.
func coldFiles(t *testing.T, bytes int64) *emulate.Files {
	t.Helper()
	files, err := emulate.Prepare(t.Context(), "", emulate.Options{Bytes: bytes})
	if cached := new(emulate.StillCachedError); errors.As(err, &cached) {
		t.Skip("no file here can be made cold: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	if files.FileSystem().Remote {
		t.Skipf("%s shows on no disk of this machine", files.FileSystem().Name)
	}
	return files
}

// load reads the model cold within a span. Before and after it does something else, for longer than the time between two
// readings: how much of an interval's bytes came before a span's start is not known, and this is no test of guesses.
func load(t *testing.T, tracer trace.Tracer, files *emulate.Files, name string, say ...attribute.KeyValue) {
	t.Helper()
	if err := files.Cold(); err != nil {
		t.Fatal(err)
	}
	ctx, span := tracer.Start(context.Background(), name, trace.WithAttributes(say...))
	defer span.End()
	time.Sleep(250 * time.Millisecond)
	if _, err := emulate.Load(ctx, files, emulate.LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(250 * time.Millisecond)
}

// The one thing that all of this is for: a program's own span says what its time went to.
func TestSpanOfAColdRead(t *testing.T) {
	c := prepare(t, "--config", "../../examples/collector/file.yaml").start()
	files := coldFiles(t, 512*mib) // the model is a quarter of them
	load(t, tracer(t, c.otlp, here(t)...), files, "load of weights",
		attribute.String("stallspan.window.kind", "model_load"), attribute.String("file.path", files.Model()))

	s := c.find("load of weights")
	read, size := s.Attributes.number("stallspan.disk.read.bytes"), float64(files.ModelBytes())
	if read < 0.99*size || read > 1.5*size { // what else the machine reads is in it
		t.Errorf("%v bytes were read from disk, of a file of %v", read, size)
	}
	for key, want := range map[string]any{
		"stallspan.window.kind": "model_load", "stallspan.window.source": "span", "file.path": files.Model(),
	} {
		if got := s.Attributes[key]; got != want {
			t.Errorf("%s is %v, not %v", key, got, want)
		}
	}
	if s.Attributes["stallspan.verdict"] == nil || s.Attributes["stallspan.finding"] == nil {
		t.Errorf("no verdict or no finding: %v", s.Attributes)
	}
	whole := s.Attributes.number("stallspan.process.on_cpu.time") + s.Attributes.number("stallspan.gpu.busy.time") +
		s.Attributes.number("stallspan.stall.storage.time") + s.Attributes.number("stallspan.stall.cpu.time") +
		s.Attributes.number("stallspan.stall.other.time")
	if took := s.seconds(t); whole < 0.98*took || whole > 1.02*took {
		t.Errorf("the parts add up to %v s, the span took %v s: %v", whole, took, s.Attributes)
	}
	if s.scope != "a-library" || s.Status.Code != 0 {
		t.Errorf("it came as %q with status %d: its scope and status are the program's", s.scope, s.Status.Code)
	}
	for _, child := range c.children(s) {
		if child.scope == s.scope {
			t.Errorf("the child %s has the program's scope, not Stallspan's", child.Name)
		}
	}
	c.stop()
}

// Of the default conditions: a load that a program traces by itself, with no word of Stallspan in it.
func TestSpanByItsName(t *testing.T) {
	c := prepare(t, "--config", "../../examples/collector/file.yaml").start()
	load(t, tracer(t, c.otlp, here(t)...), coldFiles(t, 128*mib), "model.load", attribute.String("model.id", "resnet50"))
	s := c.find("model.load")
	if s.Attributes["stallspan.window.kind"] != "model_load" || s.Attributes["stallspan.model.name"] != "resnet50" {
		t.Errorf("%v", s.Attributes)
	}
	c.stop()
}

// What the history of this machine cannot know of goes through as it came.
func TestSpansThatPassUntouched(t *testing.T) {
	c := prepare(t, "--config", "../../examples/collector/file.yaml").start()
	kind := attribute.String("stallspan.window.kind", "epoch")
	ours, theirs := tracer(t, c.otlp, here(t)...), tracer(t, c.otlp, attribute.String("host.name", "another-machine"))
	for name, start := range map[string]func() trace.Span{
		"of another host": func() trace.Span { return began(theirs, "of another host", kind) },
		"of no interest":  func() trace.Span { return began(ours, "of no interest") },
		"already judged": func() trace.Span {
			return began(ours, "already judged", kind, attribute.String("stallspan.verdict", "gpu_bound"))
		},
	} {
		start().End()
		s := c.find(name)
		for key := range s.Attributes {
			if key != "stallspan.window.kind" && key != "stallspan.verdict" {
				t.Errorf("%s got %s", name, key)
			}
		}
		if len(s.Events) > 0 || len(c.children(s)) > 0 {
			t.Errorf("%s got events %v and %d children", name, s.Events, len(c.children(s)))
		}
	}
	c.stop()
}

func began(tracer trace.Tracer, name string, say ...attribute.KeyValue) trace.Span {
	_, span := tracer.Start(context.Background(), name, trace.WithAttributes(say...))
	return span
}

// The program that docs/collector.md begins with.
func TestExampleProgram(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("the example is in Python, and no python3 is installed")
	}
	c := prepare(t, "--config", "../../examples/collector/file.yaml").start()
	program := exec.CommandContext(t.Context(), python, "../../examples/collector/epochs.py", coldFiles(t, 128*mib).Model(), "2000")
	program.Env = append(os.Environ(), "OTLP_HTTP="+c.http)
	if out, err := program.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := c.find("epoch 2")
	if s.Attributes["stallspan.verdict"] == nil || s.Attributes["stallspan.training.epoch.index"] != int64(2) {
		t.Errorf("%v", s.Attributes)
	}
	if got := s.Attributes["stallspan.window.scope"]; got != "process" {
		t.Errorf("the third span of a process is judged by the time of: %v", got)
	}
	c.stop()
}
