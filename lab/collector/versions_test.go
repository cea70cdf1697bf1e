package collector

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The one set of versions. Stable modules of the Collector have a version of their own.
const (
	core, stable, contrib = "v0.161.0", "v1.67.0", "v0.161.0"

	corePath    = "go.opentelemetry.io/collector"
	contribPath = "github.com/open-telemetry/opentelemetry-collector-contrib/"
	tools       = "../../tools/go.mod"
)

// exceptions are modules of contrib at another version.
var exceptions = map[string]string{
	// v1.0.0, the next one, requires a module for tests that is not published.
	contribPath + "processor/k8sattributesprocessor": "v0.160.0",
}

// ocb refuses components of another minor version than its own, and go.mod selects the modules of our own code. So the
// three files must name the same versions.
func TestVersionsAreOneSet(t *testing.T) {
	named := map[string]map[string]string{ // by file, then by module
		"builder-config.yaml": builderModules(t),
		"go.mod":              requirements(t, "../../go.mod"),
		"tools/go.mod":        requirements(t, tools),
	}
	first := map[string]string{}
	for file, modules := range named {
		found := 0
		for module, version := range modules {
			if !isCollector(module) {
				continue
			}
			found++
			right := version == core || version == stable
			if strings.HasPrefix(module, contribPath) {
				right = version == contrib || version == exceptions[module]
			}
			if !right {
				t.Errorf("%s: %s is at %s, want %s or %s, or in contrib %s",
					file, module, version, core, stable, contrib)
			}
			if other, ok := first[module]; ok && other != version {
				t.Errorf("%s: %s is at %s, want %s as in another file", file, module, version, other)
			}
			first[module] = version
		}
		if found < 3 {
			t.Errorf("%s: got %d modules of the Collector, want at least 3", file, found)
		}
	}
	for _, tool := range []string{"builder", "mdatagen"} {
		if v := named["tools/go.mod"][corePath+"/cmd/"+tool]; v != core {
			t.Errorf("%s: version of %s: got %q, want %s", tools, tool, v, core)
		}
	}
}

// The program, the Collector, the chart and the Python package have one version. Python writes it in another way.
func TestVersionsOfAReleaseAreOne(t *testing.T) {
	number := find(t, "../../agent/internal/version/version.go", `(?m)^\tversionNumber = "(.+)"$`)
	for path, pattern := range map[string]string{
		"../../builder-config.yaml":              `(?m)^  version: (.+)$`,
		"../../deploy/helm/stallspan/Chart.yaml": `(?m)^appVersion: (.+)$`,
	} {
		if got := find(t, path, pattern); got != number {
			t.Errorf("%s: got the version %s, want %s as in agent/internal/version/version.go", path, got, number)
		}
	}
	number = strings.Replace(number, "-dev", ".dev0", 1)
	for path, pattern := range map[string]string{
		"../../python/pyproject.toml":            `(?m)^version = "(.+)"$`,
		"../../python/src/stallspan/__init__.py": `(?m)^__version__ = "(.+)"$`,
	} {
		if got := find(t, path, pattern); got != number {
			t.Errorf("%s: got the version %s, want %s as in agent/internal/version/version.go", path, got, number)
		}
	}
}

// find returns what the group of a pattern matches in a file.
func find(t *testing.T, path, pattern string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(pattern).FindSubmatch(text)
	if match == nil {
		t.Fatalf("%s: got no %s", path, pattern)
	}
	return string(match[1])
}

func isCollector(module string) bool {
	return module == corePath || strings.HasPrefix(module, corePath+"/") || strings.HasPrefix(module, contribPath)
}

// builderModules returns the gomod entries of builder-config.yaml.
func builderModules(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../builder-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config map[string]yaml.Node
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	modules := map[string]string{}
	for section, node := range config {
		if section == "dist" || section == "replaces" {
			continue
		}
		var entries []struct{ GoMod string }
		if err := node.Decode(&entries); err != nil {
			t.Fatalf("section %s: got error %v, want a list of modules", section, err)
		}
		for _, e := range entries {
			module, version, ok := strings.Cut(e.GoMod, " ")
			if !ok {
				t.Errorf("builder-config.yaml: got %q, want a module and a version", e.GoMod)
			}
			modules[module] = version
		}
	}
	return modules
}

// requirements returns the modules that a go.mod requires.
func requirements(t *testing.T, path string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && strings.Contains(fields[0], ".") && strings.HasPrefix(fields[1], "v") {
			modules[fields[0]] = fields[1]
		}
	}
	return modules
}
