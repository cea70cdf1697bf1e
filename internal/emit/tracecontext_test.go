package emit

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

func TestParseTraceparent(t *testing.T) {
	const ids = "0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"
	for text, valid := range map[string]bool{
		"00-" + ids + "-01":                   true,
		"00-" + ids + "-00":                   true,
		" 00-" + ids + "-01\n":                true,
		"cc-" + ids + "-01-more":              true,
		"":                                    false,
		"00-" + ids:                           false,
		"00-" + ids + "-01-more":              false,
		"ff-" + ids + "-01":                   false,
		"00-" + strings.ToUpper(ids) + "-01":  false,
		"00-" + strings.Repeat("0", 32) + ids: false,
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": false,
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01": false,
	} {
		found, err := ParseTraceparent(text)
		if (err == nil) != valid || found.IsValid() != valid || found.IsRemote() != valid {
			t.Errorf("%q: got %v, %v, want valid %v", text, found, err, valid)
		}
	}
}

func FuzzParseTraceparent(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Add("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff-x")
	f.Add("00-\xff")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := ParseTraceparent(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
				t.Errorf("got the error %q, want one short line", err)
			}
			return
		}
		again, err := ParseTraceparent(Traceparent(found))
		if err != nil || !again.Equal(found) && found.TraceFlags()&^(trace.FlagsSampled|trace.FlagsRandom) == 0 {
			t.Errorf("%q: got %v, %v from its own Traceparent, want %v", text, again, err, found)
		}
	})
}

func TestChildContext(t *testing.T) {
	root := SpanContext(trace.SpanContext{}, true)
	if !root.IsValid() || !root.IsSampled() || root.IsRemote() {
		t.Errorf("got the root %v, want a valid, sampled, local one", root)
	}
	state, err := trace.ParseTraceState("vendor=1")
	if err != nil {
		t.Fatal(err)
	}
	parent := root.WithRemote(true).WithTraceFlags(0).WithTraceState(state)
	child := SpanContext(parent, true)
	if child.TraceID() != parent.TraceID() || child.SpanID() == parent.SpanID() || !child.IsValid() || child.IsSampled() ||
		child.IsRemote() || child.TraceState().String() != "vendor=1" {
		t.Errorf("got the child %v of %v, want its trace and state, not sampled, local", child, parent)
	}
}
