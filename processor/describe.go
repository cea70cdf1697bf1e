package processor

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// modelNames are the attributes that name the model that a load is of: ours, Roboflow's and ModelExpress's.
func modelNames() []attribute.Key {
	return []attribute.Key{semconv.ModelNameKey, "model.id", "model_name"}
}

// mostGPUs bounds the GPUs of one span. No machine has more.
const mostGPUs = 64

// facts reads what a span and its resource say: the span's own word counts first. An attribute that has a type or a value
// that it cannot have is as good as absent, and ignored is told of its key.
type facts struct {
	span, resource pcommon.Map
	ignored        func(attribute.Key)
}

// find looks at the span, then at the resource, for the first value that read can read.
func find[T any](f facts, key attribute.Key, read func(pcommon.Value) (T, bool)) (found T, ok bool) {
	for _, attrs := range [...]pcommon.Map{f.span, f.resource} {
		if v, there := attrs.Get(string(key)); there {
			if found, ok := read(v); ok {
				return found, true
			}
			f.ignored(key)
		}
	}
	return found, false
}

func (f facts) text(key attribute.Key) string {
	s, _ := find(f, key, func(v pcommon.Value) (string, bool) { return v.Str(), v.Type() == pcommon.ValueTypeStr })
	return s
}

// pid is process.pid: 0 where it is unknown. Some SDKs tell it as a string.
func (f facts) pid() int {
	pid, _ := find(f, semconv.ProcessPIDKey, func(v pcommon.Value) (int, bool) {
		n, err := v.Int(), error(nil)
		if v.Type() == pcommon.ValueTypeStr {
			n, err = strconv.ParseInt(v.Str(), 10, 32)
		}
		return int(n), err == nil && n > 0 && n <= math.MaxInt32
	})
	return pid
}

// gpus are the GPUs that the span is about, each once: none where it does not say.
func (f facts) gpus() []string {
	ids, _ := find(f, semconv.GPUIDsKey, func(v pcommon.Value) (ids []string, ok bool) {
		if v.Type() != pcommon.ValueTypeSlice || v.Slice().Len() > mostGPUs {
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

// kind is what the span says that it is, by stallspan.window.kind: "" where it does not.
func kind(span ptrace.Span, ignored func(attribute.Key)) window.Kind {
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

// The words of a span's name, whatever way they are joined: "load_model", "loadModel", "Load model".
var (
	aLoad       = regexp.MustCompile(`(^|[^A-Za-z])(?i:load(ing)?)($|[^a-z])|[a-z]Load(ing)?($|[^a-z])`)
	aCheckpoint = regexp.MustCompile(`(?i:checkpoint|(^|[^a-z])ckpt)`)
	anEpoch     = regexp.MustCompile(`(^|[^A-Za-z])(?i:epoch)($|[^a-z])|[a-z]Epoch($|[^a-z])`)
	atTheEnd    = regexp.MustCompile(`[0-9]+$`)
)

// named is the kind of a window that a span's name tells of.
func named(name string) window.Kind {
	switch {
	case aLoad.MatchString(name): // also "load checkpoint": a model comes from storage
		return window.ModelLoad
	case aCheckpoint.MatchString(name):
		return window.Checkpoint
	case anEpoch.MatchString(name):
		return window.Epoch
	}
	return window.Custom
}

// describe fills in what the span's window is, but not when and where it was.
func describe(k window.Kind, span ptrace.Span, f facts) window.Window {
	if k == "" {
		k = named(span.Name())
	}
	w := window.Window{Kind: k, Source: window.FromSpan, Run: f.text(semconv.TrainingRunNameKey), GPUs: f.gpus()}
	switch k {
	case window.ModelLoad:
		w.Path = f.text(semconv.FilePathKey)
		for _, key := range modelNames() {
			w.Model = cmp.Or(w.Model, f.text(key))
		}
	case window.Epoch:
		w.Epoch, w.HasEpoch = epoch(span.Name(), f)
	case window.Custom:
		w.Name = span.Name()
	}
	if name := f.text(semconv.WindowNameKey); name != "" {
		w.Name = name
	}
	return w
}

// epoch is the number that the span gives, or else the one at the end of its name.
func epoch(name string, f facts) (int, bool) {
	n, ok := find(f, semconv.TrainingEpochIndexKey, func(v pcommon.Value) (int, bool) {
		return int(v.Int()), v.Type() == pcommon.ValueTypeInt
	})
	if ok {
		return n, true
	}
	n, err := strconv.Atoi(atTheEnd.FindString(name))
	return n, err == nil
}
