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
			if row(p) {
				own = f.of(p.framework) // no gate lets it through before its heading
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

// Lines as people print them, which no framework has.
func TestOwnWords(t *testing.T) {
	f := builtin()[0]
	for line, want := range map[string]mark{
		"Epoch 1/3 - 8.3s loss 0.5":         ends,
		"[epoch 0] 4.74s std 1.000":         ends,
		"Epoch 2/5 (1m 23s): avg 0.3":       ends,
		"Epoch 1 in 12.3 seconds":           ends,
		"Epoch 3 | train/loss 0.5":          ends,
		"Epoch 7, G_loss: 0.3, D_loss: 0.2": ends,
		"epoch 1: train 0.693 val 0.69":     ends,
		"Finished epoch 1 in 12s":           ends,
		"2026-01-01 12:00:00.1 | INFO | __main__:train:45 - Epoch 1 - dice: 0.5": ends,
		`{"level": "info", "epoch": 4, "val_acc": 0.3}`:                          ends,
		`{"epoch":4,"global_step":100,"loss":0.3}`:                               progresses,

		"Epoch 1 [00:12<00:30, 3 it/s]":                   0,
		"Epoch 1: 12.3s/it":                               0,
		"Epoch 3: 300 M parameters":                       0,
		"Loading data for epoch 3: 12.3s":                 0,
		"Saving checkpoint at epoch 3":                    0,
		"3         0.412000    0.511000    00:12":         0, // without its heading
		`{"epoch": 3, "event": "start", "time": 1700000}`: 0,
		`{"epoch": 0.38, "loss": 1}`:                      0,
	} {
		got := mark(0)
		if m, _, _ := f.match([]byte(line)); m != nil {
			got = m.marks
		}
		if got != want {
			t.Errorf("%q: got the mark %d, want %d", line, got, want)
		}
	}
}

// row reports whether the pattern is of a table's row, which follows a heading of the same framework.
func row(p pattern) bool {
	return (p.framework == "Ultralytics" || p.framework == "fastai") && p.marks != announces
}

// gated reports whether every line that the row can match holds a gate.
func gated(f formats, p pattern) bool {
	switch {
	case p.literal == epochWord, strings.Contains(p.expr, "Epoch"), strings.Contains(p.expr, "'epoch'"):
		return f.pass([]byte("poch")) && f.pass([]byte("POCH"))
	case row(p): // its heading holds one
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
