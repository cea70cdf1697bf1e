package emit

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/window"
)

// TestAttributesOfTheOwner puts what a window's owner said of it on its span, and lets it bend none of ours.
func TestAttributesOfTheOwner(t *testing.T) {
	r := &window.Report{Window: window.Window{Kind: window.Custom, Source: window.Announced, Attributes: map[string]string{
		"team": "vision", "dataset": "\xffimages", "error": "true", "stallspan.verdict": "gpu_bound", "": "nothing",
	}}, Judgement: window.Judgement{Verdict: window.Unknown}}
	got := attribute.NewSet(Attributes(r)...)
	for key, want := range map[attribute.Key]string{"team": "vision", "dataset": "\uFFFDimages",
		"stallspan.verdict": "unknown"} {
		if v, ok := got.Value(key); !ok || v.AsString() != want {
			t.Errorf("%s is %q, want %q", key, v.AsString(), want)
		}
	}
	for _, key := range []attribute.Key{"error", ""} {
		if got.HasValue(key) {
			t.Errorf("%q is there", key)
		}
	}
}
