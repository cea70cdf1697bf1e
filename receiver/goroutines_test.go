//go:build linux && (amd64 || arm64)

package receiver

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unprotected are the goroutines of a Collector that begin without Protect or Restart: a package, a part of their text,
// and the reason.
var unprotected = [][3]string{
	{"internal/api", "http.Serve(newListener(", "package net/http, which calls what is protected"},
	{"internal/helper", "s.trace(", "of a helper"},
	{"internal/helper", "keepHelper(", "of a keeper, which has a spare"},
	{"internal/helper", "keepSpare(", "of a keeper"},
	{"internal/helper", "c.receive()", "it protects itself"},
	{"internal/helper", "c.watch()", "it kills a process, and starts a timer"},
	{"internal/helper", "p.Wait()", "it only waits"},
	{"internal/helper", "p.Kill()", "a single call"},
	{"internal/monitor", "m.sources.Run(", "the sampler protects each source and each tick"},
	{"internal/emit/queue", "cancel", "a single call"},
	{"internal/emit/queue", "q.run(ctx)", "it protects each call of Send"},
	{"internal/recording", "s.run(to)", "it protects itself"},
	{"internal/source/gpu", "c.run(job, r.returned)", "it recovers from the job"},
	{"internal/source/gpu", "r.driver.close", "it waits for calls, and recovers from the last one"},
	{"internal/source/procfile", "r.body()", "it protects the reads"},
	{"internal/state/baseline", "s.run(loaded)", "it protects itself"},
	{"internal/trust", "c.Start()", "it only starts a program"},
	{"internal/trust", "LimitThread(", "it only starts a program"},
	{"receiver", "r.spans.close(ctx)", "it waits for a queue"},
	{"receiver", "r.records.close(ctx)", "it waits for a queue"},
}

var protects = regexp.MustCompile(`\b(Protect|Restart)\(`)

// No goroutine of ours can end the Collector by a panic: each begins with Protect or Restart, or is in the list.
func TestGoroutinesAreProtected(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.Dir}}{{range .GoFiles}} {{.}}{{end}}", ".",
		"../processor").Output()
	if err != nil {
		t.Skipf("needs the go command: %v", err)
	}
	used := map[[3]string]bool{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		name, ours := strings.CutPrefix(fields[0], "github.com/stallspan/stallspan/")
		if !ours {
			continue
		}
		for _, file := range fields[2:] {
			for _, text := range goroutines(t, filepath.Join(fields[1], file)) {
				known := protects.MatchString(text)
				for _, u := range unprotected {
					if u[0] == name && strings.Contains(text, u[1]) {
						known, used[u] = true, true
					}
				}
				if !known {
					t.Errorf("%s/%s: got a goroutine without sample.Protect or sample.Restart: %s", name, file, text)
				}
			}
		}
	}
	for _, u := range unprotected {
		if !used[u] {
			t.Errorf("got no goroutine in %s with %q, want it out of the list", u[0], u[1])
		}
	}
}

// goroutines returns the text of each function in a file that runs on a goroutine of its own.
func goroutines(t *testing.T, file string) (texts []string) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	add := func(n ast.Node) {
		texts = append(texts, string(source[set.Position(n.Pos()).Offset:set.Position(n.End()).Offset]))
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			add(n.Call)
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "Go" || f.Sel.Name == "AfterFunc") && len(n.Args) > 0 {
				add(n.Args[len(n.Args)-1])
			}
		}
		return true
	})
	return texts
}
