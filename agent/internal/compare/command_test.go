package compare

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/test/golden"
)

func reportPath(name string) string {
	return filepath.Join("..", "..", "..", "testdata", "reports", name+".json")
}

// of are the options with one report of each side.
func (o options) of(a, b string) *options {
	o.before, o.after = []string{a}, []string{b}
	return &o
}

func TestCompareRealReports(t *testing.T) {
	for _, test := range [][2]string{
		{"demo-first", "demo-second"}, // noise, and a load that only one had to wait for
		{"train-disk", "train-memory"},
		{"train-memory", "train-disk"},
		{"demo-first", "train-disk"}, // ledgers of two kinds
		{"window", "window"},
		{"window", "demo-first"}, // nothing in common
	} {
		name := test[0] + "-" + test[1]
		var text, document bytes.Buffer
		for out, o := range map[*bytes.Buffer]options{&text: {threshold: 0.1},
			&document: {threshold: 0.1, asJSON: true}} {
			if err := o.of(reportPath(test[0]), reportPath(test[1])).run(out); err != nil {
				t.Fatal(err)
			}
		}
		golden.Check(t, filepath.Join("testdata", name+".txt"), text.Bytes())
		golden.Check(t, filepath.Join("testdata", name+".json"), document.Bytes())
		for _, line := range strings.Split(text.String(), "\n") {
			if output.Columns(line) > output.TableWidth || strings.TrimRight(line, " ") != line {
				t.Errorf("%d columns: %q", output.Columns(line), line)
			}
		}
	}
}

// The keys are those of docs/commands.md.
func TestComparisonKeysAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := bytes.Cut(page, []byte("\n## compare"))
	section, _, _ = bytes.Cut(section, []byte("\n## "))
	shown, err := os.ReadFile("testdata/train-disk-train-memory.txt")
	if err != nil {
		t.Fatal(err)
	}
	shown, _, _ = bytes.Cut(bytes.TrimSpace(shown), []byte("\nepoch 2 ")) // the page has the first window
	if shown = bytes.ReplaceAll(shown, []byte("../../../testdata/reports/train-"), nil); !bytes.Contains(section, shown) {
		t.Errorf("the example is not as it prints:\n%s", shown)
	}
	found, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil || len(found) == 0 {
		t.Fatalf("got %v %v, want at least one golden file", found, err)
	}
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var document any
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		for key := range golden.Keys(document) {
			if !bytes.Contains(section, []byte("`"+key+"`")) {
				t.Errorf("%s: %s is not documented", path, key)
			}
		}
	}
}

// Of a thousand windows, those that changed are shown, and the others are counted.
func TestCompareManyWindows(t *testing.T) {
	c := &Comparison{Finding: "Done."}
	for n := range 1000 {
		p := &Pair{Kind: "epoch", Label: "epoch " + strings.Repeat("x", n), Change: Same}
		p.A.Duration, p.B.Duration = 10, 10.1
		if n%100 == 0 {
			p.Change, p.B.Duration, p.Difference = Slower, 20, 10
		}
		c.Windows = append(c.Windows, p)
		c.OnlyA = append(c.OnlyA, Name{Kind: "epoch", Label: "\x1b[31m" + p.Label})
	}
	var out bytes.Buffer
	if err := output.WriteTable(&out, func(t *output.Table) {
		comparisonTable{t}.comparison(newComparison("a", strings.Repeat("very/long/", 20)+"b.json", c, nil))
	}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "slower"); got != 10 {
		t.Errorf("%d of 10 that got slower: %s", got, out.String())
	}
	words := strings.Join(strings.Fields(out.String()), " ")
	if !strings.Contains(words, "... 960 more") || !strings.Contains(words, "and 992 more") ||
		strings.Contains(words, "\x1b") {
		t.Errorf("got %s, want the counts of rows left out, and no escape sequence", out.String())
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if output.Columns(line) > output.TableWidth {
			t.Errorf("%d columns: %q", output.Columns(line), line)
		}
	}
}

func TestCompareMarkdown(t *testing.T) {
	for name, o := range map[string]*options{
		"train-disk-train-memory": options{}.of(reportPath("train-disk"), reportPath("train-memory")),
		"several": {before: slices.Repeat([]string{reportPath("train-disk")}, 4),
			after: slices.Repeat([]string{reportPath("train-memory")}, 4)},
	} {
		o.threshold, o.markdown = 0.1, "-"
		var text bytes.Buffer
		if err := o.run(&text); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, filepath.Join("testdata", name+".markdown"), text.Bytes())
		o.markdown = ""
		text.Reset()
		if err := o.run(&text); err != nil {
			t.Fatal(err)
		}
		if name == "several" {
			golden.Check(t, filepath.Join("testdata", name+".txt"), text.Bytes())
		}
	}
}

// A name of a program stays a name.
func TestMarkdownEscapes(t *testing.T) {
	const hostile = "a|b\n\n# c <img src=x> [d](http://e) `f` *g* @h &lt;"
	got := inMarkdown(hostile)
	if want := "a\\|b??\\# c &lt;img src=x> \\[d\\](http://e) \\`f\\` \\*g\\* &#64;h &amp;lt;"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Nothing that a program called itself becomes markup, and a bar is as long as its time.
func TestComparisonHTML(t *testing.T) {
	run := func(seconds float64) *explain.Document {
		w := &explain.Report{Kind: "custom", Name: `<script>alert(1)</script>" onload="x`, Duration: seconds}
		return &explain.Document{Windows: []*explain.Report{w}}
	}
	c, runs, err := Several([]*explain.Document{run(2)}, []*explain.Document{run(1), run(1)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := comparisonHTML(newComparison("<img src=x>", "b", c, runs))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "<img", `" onload`} {
		if strings.Contains(string(text), bad) {
			t.Errorf("got %s in the page, want it escaped", bad)
		}
	}
	for _, want := range []string{`width="1000.00"`, `width="500.00"`, "default-src 'none'", "&lt;script&gt;"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("got no %s in the page", want)
		}
	}
}
