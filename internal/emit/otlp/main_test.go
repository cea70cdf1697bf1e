package otlp_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/emit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const version = "1.2.3"

// someAttributes has the types of attributes that emit uses.
func someAttributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.Bool("bool", true), attribute.Float64("float", 0.5), attribute.Int64("int", 7),
		attribute.String("string", "zwölf"), attribute.StringSlice("strings", []string{"", "x"}),
	}
}

// nestedSpan has two children and a grandchild.
func nestedSpan() emit.Span {
	start := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	third := emit.Span{Name: "third", Start: start.Add(3 * time.Second), End: start.Add(4 * time.Second)}
	return emit.Span{
		Name: "every", Start: start, End: start.Add(time.Minute), Attributes: someAttributes(),
		Events: []emit.Event{{Name: "one", Time: start, Attributes: someAttributes()}},
		Children: []emit.Span{
			{Name: "first", Start: start, End: start},
			{Name: "second", Start: start.Add(time.Second), End: start.Add(2 * time.Second),
				Attributes: someAttributes(), Children: []emit.Span{third}},
		},
	}
}
