package semconv_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/semconv"
	"github.com/stallspan/stallspan/test/signals"
)

// Two constants of one name would be two spellings of one thing in the code.
func TestNamesAreUnique(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "generated.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.CONST {
			continue
		}
		for _, s := range general.Specs {
			value := s.(*ast.ValueSpec)
			literal := ""
			ast.Inspect(value.Values[0], func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok {
					literal = l.Value
				}
				return true
			})
			if other, taken := seen[literal]; taken {
				t.Errorf("%s and %s are both %s", other, value.Names[0].Name, literal)
			}
			seen[literal] = value.Names[0].Name
		}
	}
	if len(seen) < 2 {
		t.Errorf("found only %d constants", len(seen))
	}

	var names []string
	for _, m := range semconv.Metrics {
		names = append(names, m.Name)
	}
	ascending(t, "metrics", names)
	names = nil
	for _, s := range signals.Spans {
		names = append(names, s.Type)
	}
	ascending(t, "spans", names)
	names = nil
	for _, e := range semconv.Events {
		names = append(names, e.Name)
	}
	ascending(t, "events", names)
}

func ascending(t *testing.T, what string, names []string) {
	t.Helper()
	if len(names) == 0 {
		t.Errorf("no %s", what)
	}
	for i := 1; i < len(names); i++ {
		if names[i-1] >= names[i] {
			t.Errorf("%s: %q before %q", what, names[i-1], names[i])
		}
	}
}

func TestAttributesOfSignals(t *testing.T) {
	lists := map[string][]semconv.AttributeRef{}
	for _, m := range semconv.Metrics {
		lists["metric "+m.Name] = signals.OfMetrics[m.Name]
	}
	for _, s := range signals.Spans {
		lists["span "+s.Type] = s.Attributes
	}
	for _, e := range semconv.Events {
		lists["event "+e.Name] = e.Attributes
	}
	for what, list := range lists {
		var keys []string
		for _, use := range list {
			keys = append(keys, string(use.Key))
		}
		if len(list) == 0 && strings.HasPrefix(what, "metric ") {
			continue // there is one of it
		}
		ascending(t, "attributes of "+what, keys)
	}
}

func TestKindString(t *testing.T) {
	for kind, want := range map[semconv.Kind]string{
		semconv.Counter: "counter", semconv.UpDownCounter: "updowncounter", semconv.Gauge: "gauge",
		semconv.Histogram: "histogram", semconv.Kind(9): "unknown",
	} {
		if got := kind.String(); got != want {
			t.Errorf("Kind(%d) = %q, want %q", kind, got, want)
		}
	}
}
