//go:build linux && (amd64 || arm64)

package processor

import (
	"fmt"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/window"
)

func TestNamed(t *testing.T) {
	for name, want := range map[string]window.Kind{
		"Load model": window.ModelLoad, "Load weights": window.ModelLoad, "Loading (GPU)": window.ModelLoad,
		"model.load": window.ModelLoad, "model.artifacts.load": window.ModelLoad, "inference_models.load": window.ModelLoad,
		"load_model": window.ModelLoad, "loadModel": window.ModelLoad, "modelLoad": window.ModelLoad, "LOAD": window.ModelLoad,
		"load_checkpoint": window.ModelLoad,
		"epoch":           window.Epoch, "Epoch 3": window.Epoch, "train_epoch": window.Epoch, "TrainEpoch": window.Epoch,
		"epoch12": window.Epoch, "training epoch": window.Epoch,
		"checkpoint": window.Checkpoint, "save_checkpoint": window.Checkpoint, "SaveCheckpoint": window.Checkpoint,
		"epoch checkpoint": window.Checkpoint, "ckpt": window.Checkpoint,
		"megatron.load_checkpoint.io_read": window.ModelLoad, "nv.dl.training.checkpoint.load": window.ModelLoad,
		"Reload weights": window.ModelLoad, "restore_checkpoint": window.ModelLoad, "ModelLoader.load": window.ModelLoad,
		"megatron.save_checkpoint.io_write": window.Checkpoint, "checkpoint_save_async": window.Checkpoint,
		"save_model": window.Checkpoint, "megatron.train_step": window.Steps, "nv.dl.training.iteration": window.Steps,
		"rl.grpo.step": window.Steps, "rl.grpo.checkpointing": window.Checkpoint,
		"nv.nvrx.ckpt.save.request": window.Checkpoint, "training_single_iteration": window.Steps, "lens.epoch": window.Epoch, "Epoch/3": window.Epoch,
		"upload": window.Custom, "payload": window.Custom, "DataLoader": window.Custom, "reload": window.Custom,
		"epochal": window.Custom, "": window.Custom,
	} {
		if got := kindByName(name); got != want {
			t.Errorf("%q: %s, not %s", name, got, want)
		}
	}
}

// attrs is a map of what v is under key.
func attrs(t *testing.T, key string, v any) pcommon.Map {
	t.Helper()
	m := pcommon.NewMap()
	if err := m.FromRaw(map[string]any{key: v}); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestPID(t *testing.T) {
	for _, c := range []struct {
		v    any
		want int
	}{
		{12, 12}, {"12", 12}, {0, 0}, {-1, 0}, {int64(1) << 31, 0}, {"x", 0}, {"", 0}, {"99999999999999999999", 0}, {1.5, 0},
		{true, 0}, {[]any{1}, 0}, {map[string]any{"a": 1}, 0},
	} {
		ignored := 0
		f := facts{attrs(t, "process.pid", c.v), pcommon.NewMap(), func(attribute.Key) { ignored++ }}
		if got := f.pid(); got != c.want || (ignored == 1) != (c.want == 0) {
			t.Errorf("%v: %d, ignored %d", c.v, got, ignored)
		}
	}
}

// What the span says is no good, and what the resource says is.
func TestFallback(t *testing.T) {
	f := facts{attrs(t, "process.pid", "x"), attrs(t, "process.pid", 7), func(attribute.Key) {}}
	if got := f.pid(); got != 7 {
		t.Errorf("pid: got %d, want the 7 of the resource", got)
	}
	f = facts{pcommon.NewMap(), attrs(t, "vllm.process_id", "8"), func(attribute.Key) {}}
	if got := f.pid(); got != 8 {
		t.Errorf("pid: got %d, want vLLM's 8", got)
	}
}

func TestGPUs(t *testing.T) {
	var many []any
	for i := range maxGPUs + 1 {
		many = append(many, fmt.Sprint(i))
	}
	for _, c := range []struct {
		v    any
		want string
	}{
		{[]any{"a", "b"}, "[a b]"}, {[]any{"a", "a"}, "[a]"}, {"a", "[]"}, {[]any{1}, "[]"}, {[]any{"a", nil}, "[]"},
		{[]any{""}, "[]"}, {[]any{}, "[]"}, {map[string]any{}, "[]"}, {many, "[]"},
	} {
		f := facts{attrs(t, "stallspan.gpu.ids", c.v), pcommon.NewMap(), func(attribute.Key) {}}
		if got := fmt.Sprint(f.gpus()); got != c.want {
			t.Errorf("GPUs of %v: got %s, want %s", c.v, got, c.want)
		}
	}
}

// The run is named by the first attribute that is there. A service is the run of epochs and steps only.
func TestRunNames(t *testing.T) {
	resource := map[string]any{"service.name": "pretrain"}
	for _, c := range []struct {
		key, name string
		kind      window.Kind
		want      string
	}{
		{"", "", window.ModelLoad, ""}, {"", "", window.Steps, "pretrain"}, {"slurm.job.id", "77", window.ModelLoad, "77"},
		{"nv.dl.run.uuid", "0b5e", window.Steps, "0b5e"}, {"nemo.run.id", "night", window.Epoch, "night"},
		{"stallspan.training.run.name", "own", window.Epoch, "own"},
		{"service.name", "unknown_service:python", window.ModelLoad, "own"},
	} {
		if c.key != "" {
			resource[c.key] = c.name
		}
		f := facts{pcommon.NewMap(), pcommon.NewMap(), func(attribute.Key) {}}
		if err := f.resource.FromRaw(resource); err != nil {
			t.Fatal(err)
		}
		if got := describe(c.kind, ptrace.NewSpan(), f).Run; got != c.want {
			t.Errorf("run of a %s with %v: got %q, want %q", c.kind, resource, got, c.want)
		}
	}
	f := facts{pcommon.NewMap(), attrs(t, "service.name", "unknown_service:python"), func(attribute.Key) {}}
	if got := describe(window.Epoch, ptrace.NewSpan(), f).Run; got != "" {
		t.Errorf("run of a program without a name: got %q, want none", got)
	}
}

// A span that failed, and one that its program's end cut short, are unfinished.
func TestOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(ptrace.Span)
		want window.Outcome
	}{
		"by itself": {func(ptrace.Span) {}, window.Outcome{}},
		"failed": {func(s ptrace.Span) { s.Status().SetCode(ptrace.StatusCodeError) },
			window.Outcome{Unfinished: true, Failed: true}},
		"truncated": {func(s ptrace.Span) { s.Attributes().PutBool("nemo.span.truncated", true) },
			window.Outcome{Unfinished: true, Ended: "the end of its program"}},
		"not truncated": {func(s ptrace.Span) { s.Attributes().PutBool("nemo.span.truncated", false) }, window.Outcome{}},
	} {
		span := ptrace.NewSpan()
		c.set(span)
		if got := outcome(span); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

func TestEpoch(t *testing.T) {
	for _, c := range []struct {
		name string
		v    any
		want int
		ok   bool
	}{
		{"epoch", nil, 0, false}, {"epoch 3", nil, 3, true}, {"epoch 3", 5, 5, true}, {"epoch 3", "5", 3, true},
		{"epoch", 0, 0, true}, {"epoch 99999999999999999999", nil, 0, false},
	} {
		span := ptrace.NewSpan()
		span.SetName(c.name)
		f := facts{pcommon.NewMap(), attrs(t, "stallspan.training.epoch.index", c.v), func(attribute.Key) {}}
		if w := describe(window.Epoch, span, f); w.HasEpoch != c.ok || c.ok && w.Epoch != c.want {
			t.Errorf("epoch of %q, %v: got %d, %v, want %d, %v", c.name, c.v, w.Epoch, w.HasEpoch, c.want, c.ok)
		}
	}
}
