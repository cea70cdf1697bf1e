//go:build linux && (amd64 || arm64)

package processor

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// modelNames returns the attributes with the name of a model: ours, Roboflow's and ModelExpress's.
func modelNames() []attribute.Key {
	return []attribute.Key{semconv.ModelNameKey, "model.id", "model_name"}
}

// runNames returns the attributes with the name of a training run: ours, those of NVIDIA's trainers, and Slurm's.
func runNames() []attribute.Key {
	return []attribute.Key{semconv.TrainingRunNameKey, "nemo.run.id", "nv.dl.run.uuid", "slurm.job.id"}
}

// maxGPUs bounds the GPUs of a span. No machine has more.
const maxGPUs = 64

// facts reads the attributes of a span and its resource. The span's own attributes win. An attribute with a wrong type
// or value counts as absent, and its key is passed to ignored.
type facts struct {
	span, resource pcommon.Map
	ignored        func(attribute.Key)
}

// find returns the first value that read accepts, of the span or else of its resource.
func find[T any](f facts, key attribute.Key, read func(pcommon.Value) (T, bool)) (found T, ok bool) {
	for _, attrs := range [...]pcommon.Map{f.span, f.resource} {
		if v, exists := attrs.Get(string(key)); exists {
			if found, ok := read(v); ok {
				return found, true
			}
			f.ignored(key)
		}
	}
	return found, false
}

func (f facts) text(keys ...attribute.Key) string {
	for _, key := range keys {
		s, ok := find(f, key, func(v pcommon.Value) (string, bool) { return v.Str(), v.Type() == pcommon.ValueTypeStr })
		if ok && s != "" {
			return s
		}
	}
	return ""
}

// pid returns process.pid or vLLM's vllm.process_id, or 0. Some SDKs send it as a string.
func (f facts) pid() (pid int) {
	for _, key := range []attribute.Key{semconv.ProcessPIDKey, "vllm.process_id"} {
		pid, _ = find(f, key, func(v pcommon.Value) (int, bool) {
			n, err := v.Int(), error(nil)
			if v.Type() == pcommon.ValueTypeStr {
				n, err = strconv.ParseInt(v.Str(), 10, 32)
			}
			return int(n), err == nil && n > 0 && n <= math.MaxInt32
		})
		if pid > 0 {
			break
		}
	}
	return pid
}

// gpus returns the GPUs of the span, each once.
func (f facts) gpus() []string {
	ids, _ := find(f, semconv.GPUIDsKey, func(v pcommon.Value) (ids []string, ok bool) {
		if v.Type() != pcommon.ValueTypeSlice || v.Slice().Len() > maxGPUs {
			return nil, false
		}
		for _, id := range v.Slice().All() {
			if id.Type() != pcommon.ValueTypeStr || id.Str() == "" {
				return nil, false
			}
			if !slices.Contains(ids, id.Str()) {
				ids = append(ids, id.Str())
			}
		}
		return ids, true
	})
	return ids
}

// kindOf returns stallspan.window.kind of a span, or "".
func kindOf(span ptrace.Span, ignored func(attribute.Key)) window.Kind {
	v, ok := span.Attributes().Get(string(semconv.WindowKindKey))
	if !ok {
		return ""
	}
	if k := window.Kind(v.Str()); k.Valid() {
		return k
	}
	ignored(semconv.WindowKindKey)
	return ""
}

// Words in the name of a span, in any spelling: "load_model", "loadModel", "Load model".
var (
	loadWord = regexp.MustCompile(`(^|[^A-Za-z])(?i:load(ing)?)($|[^a-z])|[a-z]Load(ing)?($|[^a-z])` +
		`|(?i:(reload|restore)[ ._-]?(model|weight|checkpoint|ckpt)|(model|weight|checkpoint|ckpt)s?[ ._-]restore)`)
	checkpointWord = regexp.MustCompile(`(?i:checkpoint|(^|[^a-z])(ckpt|(save|write)[ ._-]?(model|weight)|models?[ ._-](save|write)))`)
	stepWord       = regexp.MustCompile(`(?i)(^|[^a-z])train(ing)?[ ._-](single[ ._-])?(step|iteration)|^rl[.][a-z0-9_]+[.]step$`)
	epochWord      = regexp.MustCompile(`(^|[^A-Za-z])(?i:epoch)($|[^a-z])|[a-z]Epoch($|[^a-z])`)
	trailingNumber = regexp.MustCompile(`[0-9]+$`)
)

// maxName is how much of the name of a span is searched, in bytes. A name can be as long as a message.
const maxName = 1 << 10

// kindByName returns the kind of window that the name of a span suggests.
func kindByName(name string) window.Kind {
	name = name[:min(len(name), maxName)]
	switch {
	case loadWord.MatchString(name): // first, because "load checkpoint" reads a model
		return window.ModelLoad
	case checkpointWord.MatchString(name):
		return window.Checkpoint
	case epochWord.MatchString(name):
		return window.Epoch
	case stepWord.MatchString(name):
		return window.Steps
	}
	return window.Custom
}

// describe returns the window of a span, without its time and its process.
func describe(k window.Kind, span ptrace.Span, f facts) window.Window {
	if k == "" {
		k = kindByName(span.Name())
	}
	w := window.Window{
		Kind: k, Source: window.FromSpan, Run: f.text(runNames()...), GPUs: f.gpus(), Name: f.text(semconv.WindowNameKey),
		Outcome: outcome(span),
	}
	switch k {
	case window.ModelLoad:
		w.Path = f.text(semconv.FilePathKey)
		w.Model = f.text(modelNames()...)
	case window.Epoch:
		w.Epoch, w.HasEpoch = epoch(span.Name(), f)
	case window.Custom, window.Steps:
		w.Name = cmp.Or(w.Name, span.Name())
	}
	if k == window.Epoch || k == window.Steps {
		w.Run = cmp.Or(w.Run, serviceName(f))
	}
	return w
}

// serviceName returns service.name, or "" for the name that SDKs give to a program without one.
func serviceName(f facts) string {
	name := f.text("service.name")
	if strings.HasPrefix(name, "unknown_service") {
		return ""
	}
	return name
}

// outcome returns how the work of a span ended. NVIDIA's trainers end what is open when they end, and say so.
func outcome(span ptrace.Span) window.Outcome {
	if span.Status().Code() == ptrace.StatusCodeError {
		return window.Outcome{Unfinished: true, Failed: true}
	}
	if cut, ok := span.Attributes().Get("nemo.span.truncated"); ok && cut.Bool() {
		return window.Outcome{Unfinished: true, Ended: "the end of its program"}
	}
	return window.Outcome{}
}

// epoch returns the number of the epoch, from an attribute or else from the end of the span's name.
func epoch(name string, f facts) (int, bool) {
	n, ok := find(f, semconv.TrainingEpochIndexKey, func(v pcommon.Value) (int, bool) {
		return int(v.Int()), v.Type() == pcommon.ValueTypeInt
	})
	if ok {
		return n, true
	}
	n, err := strconv.Atoi(trailingNumber.FindString(name))
	return n, err == nil
}
