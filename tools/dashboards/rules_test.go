package main

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	conditions "github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/semconv"
)

// promtool returns the path of promtool, from Debian's package prometheus.
func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("needs promtool (Debian: prometheus)")
	}
	if said, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", arguments, err, said)
	}
}

func TestPromtoolTakesTheRules(t *testing.T) {
	promtool(t, "check", "rules", filepath.Join(root, "docs/prometheus/rules.yaml"))
}

// testdata holds what fires and what does not.
func TestAlerts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) < 5 {
		t.Fatalf("rule tests: got %v, %v; want at least 5 files", paths, err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) { promtool(t, "test", "rules", path) })
	}
}

func TestEveryAlertHasATestAndEveryEventAnAlert(t *testing.T) {
	tests := ""
	paths, _ := filepath.Glob("testdata/*.yaml")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		tests += string(text)
	}
	groups, err := registered(t).groups()
	if err != nil {
		t.Fatal(err)
	}
	covered, names := map[string]bool{}, map[string]bool{}
	for _, g := range groups {
		for _, one := range g.Rules {
			if one.Alert == "" {
				continue
			}
			if names[one.Alert] {
				t.Errorf("two alerts are called %s", one.Alert)
			}
			names[one.Alert], covered[one.event] = true, true
			if !strings.Contains(tests, `alertname="`+one.Alert+`"`) {
				t.Errorf("no test in testdata sees %s fire", one.Alert)
			}
		}
	}
	for _, e := range semconv.Events {
		if !covered[e.Name] && e.Name != "stallspan.gpu.released" { // an operator asked for that
			t.Errorf("event %s: got no alert, want one", e.Name)
		}
	}
}

// The section that alerts link to exists.
func TestRunbook(t *testing.T) {
	path, anchor, _ := strings.Cut(runbook, "#")
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	if heading := "\n## " + strings.ReplaceAll(anchor, "-", " ") +
		"\n"; !strings.Contains(strings.ToLower(string(text)), heading) {
		t.Errorf("%s has no section %q", path, anchor)
	}
	for _, e := range semconv.Events {
		if !strings.Contains(string(text), e.Name) {
			t.Errorf("%s says nothing of %s", path, e.Name)
		}
	}
}

// Rules and events have the same limits.
func TestLimitsAreThoseOfTheEvents(t *testing.T) {
	if got := conditions.LimitsOf[conditions.GPUHot].Raise; got != -hotMargin {
		t.Errorf("a GPU is hot at %v", got)
	}
	if got := conditions.LimitsOf[conditions.GPUThrottled].Raise; got != throttledMuch {
		t.Errorf("a GPU is throttled at %v", got)
	}
	theirs := constants(t, filepath.Join(root, "internal/alert"))
	for name, ours := range map[string]float64{
		"defaultSlowdown": usualSlowdown, "deepQueue": deepQueue, "nearCeiling": nearCeiling, "longAwait": longAwait,
	} {
		if got, ok := theirs[name]; !ok || got != ours {
			t.Errorf("%s is %v here, and %v in internal/alert", name, ours, got)
		}
	}
	for _, code := range xids(t, filepath.Join(root, "internal/alert/condition.go")) {
		if !slices.Contains(strings.Split(programsFault, "|"), "xid_"+code) {
			t.Errorf("XID %s is a program's fault ok, and not here", code)
		}
	}
}

// constants returns the named numbers of a package.
func constants(t *testing.T, folder string) map[string]float64 {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.ValueSpec)
			if !ok || len(s.Values) != len(s.Names) {
				return true
			}
			for i, v := range s.Values {
				if number, ok := v.(*ast.BasicLit); ok && number.Kind != token.STRING {
					all[s.Names[i].Name], _ = constant.Float64Val(constant.MakeFromLiteral(number.Value, number.Kind, 0))
				}
			}
			return true
		})
	}
	return all
}

// xids returns the codes in applicationXIDs.
func xids(t *testing.T, path string) (all []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.ValueSpec)
		if !ok || s.Names[0].Name != "applicationXIDs" {
			return true
		}
		for _, e := range s.Values[0].(*ast.CompositeLit).Elts {
			code, err := strconv.Atoi(e.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, strconv.Itoa(code))
		}
		return false
	})
	if want := strings.Count(programsFault, "|") + 1; len(all) != want {
		t.Errorf("applicationXIDs is %v, and ok are %d here", all, want)
	}
	return all
}
