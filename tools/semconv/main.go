// Command semconv validates registry/*.yaml and writes generated.go, test/signals/generated.go, docs/metrics.md,
// docs/spans.md, docs/attributes.md and receiver/metadata.yaml from it. It runs in the semconv folder, by go generate.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// output is a generated file: its path from the semconv folder, and the function that returns its text.
type output struct {
	path  string
	write func(*registry) ([]byte, error)
}

var outputs = []output{
	{"generated.go", goFile("generated.go.tmpl")},
	{"../test/signals/generated.go", goFile("signals.go.tmpl")},
	{"../docs/metrics.md", page("metrics.md.tmpl")},
	{"../docs/spans.md", page("spans.md.tmpl")},
	{"../docs/attributes.md", page("attributes.md.tmpl")},
	{"../receiver/metadata.yaml", page("receiver.yaml.tmpl")},
}

func main() {
	if err := generate("."); err != nil {
		fmt.Fprintf(os.Stderr, "semconv: %v\n", err)
		os.Exit(1)
	}
}

// generate writes every output. root is the semconv folder.
func generate(root string) error {
	r, err := load(os.DirFS(filepath.Join(root, "registry")))
	if err != nil {
		return err
	}
	for _, out := range outputs {
		text, err := out.write(r)
		if err != nil {
			return fmt.Errorf("%s: %w", out.path, err)
		}
		if err := os.WriteFile(filepath.Join(root, out.path), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
