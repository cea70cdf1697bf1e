package progress

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const (
	document   = "../../../docs/epochs.md"
	tableBegin = "<!-- begin: table of formats, generated -->\n"
	tableEnd   = "<!-- end: table of formats -->\n"
)

// table formats the patterns for the document.
func table() string {
	meaning := map[mark]string{
		starts: "start", progresses: "progress", ends: "end", reaches: "amount reached", finishes: "end of training",
		announces: "heading of the rows", beginsLoad: "begin", endsLoad: "end",
	}
	var s strings.Builder
	for _, part := range []struct {
		title    string
		patterns []pattern
	}{{"Epochs", epochPatterns}, {"Model loads", loadPatterns}} {
		fmt.Fprintf(&s, "\n### %s\n\n| format | the line marks | example |\n|---|---|---|\n", part.title)
		for _, p := range part.patterns {
			example := strings.NewReplacer("|", "\\|", "\t", " ").Replace(strings.TrimSpace(p.example))
			fmt.Fprintf(&s, "| %s | %s | `%s` |\n", p.framework, meaning[p.marks], example)
		}
	}
	return s.String() + "\n"
}

func TestDocument(t *testing.T) {
	text := string(read(t, document))
	before, rest, found := strings.Cut(text, tableBegin)
	_, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		t.Fatalf("%s has no place for the table of formats", document)
	}
	want := before + tableBegin + table() + tableEnd + after
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != want {
		t.Errorf("the table in %s is not that of the code: run go test ./agent/internal/progress -update", document)
	}
}

// Each example passes the prefilter, is matched first by its own row, and has that row's meaning.
func TestExamples(t *testing.T) {
	for i, patterns := range [][]pattern{epochPatterns, loadPatterns} {
		f := builtin()[i]
		for n, p := range patterns {
			own := f
			if p.framework == "Ultralytics" && p.marks == progresses {
				own = f.of(p.framework) // no gate lets its rows through before their heading
			}
			m, _, _ := own.match([]byte(p.example))
			switch {
			case m == nil:
				t.Errorf("%s: %q is not matched", p.framework, p.example)
			case m.framework != p.framework || m.marks != p.marks:
				t.Errorf("%s: %q is matched by %s", p.framework, p.example, m.framework)
			}
			if p.literal != epochWord && !strings.Contains(p.example, p.literal) {
				t.Errorf("%s: the literal %q is not in %q", p.framework, p.literal, p.example)
			}
			if !gated(f, p) {
				t.Errorf("row %d, %s: lines of %q may hold no gate", n, p.framework, p.expr)
			}
		}
	}
}

// gated reports whether every line that the row can match holds a gate.
func gated(f formats, p pattern) bool {
	switch {
	case p.literal == epochWord, strings.Contains(p.expr, "Epoch"), strings.Contains(p.expr, "'epoch'"):
		return f.pass([]byte("poch")) && f.pass([]byte("POCH"))
	case p.framework == "Ultralytics" && p.marks == progresses: // its heading holds one
		return true
	case p.framework == "Ollama": // in the program's path
		return f.pass([]byte("ollama"))
	}
	return f.pass([]byte(p.literal))
}

// Every framework has patterns for both the begin and the end of a load.
func TestLoadPairs(t *testing.T) {
	begins, finishes := map[string]bool{}, map[string]bool{}
	for _, p := range loadPatterns {
		if p.marks == beginsLoad {
			begins[p.framework] = true
		} else {
			finishes[p.framework] = true
		}
	}
	for framework := range begins {
		if !finishes[framework] {
			t.Errorf("%s begins loads and never ends them", framework)
		}
	}
	if len(begins) != len(finishes) {
		t.Errorf("%d frameworks begin loads, %d end them", len(begins), len(finishes))
	}
}
