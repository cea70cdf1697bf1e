// Dashboards writes docs/prometheus/rules.yaml with its copy in the Helm chart, docs/prometheus/reference.md,
// docs/grafana/*.json and the names in semconv/testdata/prometheus.txt from semconv/registry and the descriptions in
// this folder, so that no name in them can drift.
//
//	hack/tool.sh dashboards -root .
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "the repository's folder")
	flag.Parse()
	if err := generate(*root); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

// generate writes every output below root.
func generate(root string) error {
	r, err := load(os.DirFS(filepath.Join(root, "semconv/registry")))
	if err != nil {
		return err
	}
	files, err := outputs(r)
	if err != nil {
		return err
	}
	for path, text := range files {
		if err := os.WriteFile(filepath.Join(root, path), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// outputs returns the text of every generated file by its path in the repository.
func outputs(r *registry) (map[string][]byte, error) {
	files := map[string][]byte{}
	var err error
	if files["docs/prometheus/rules.yaml"], err = writeRules(r); err != nil {
		return nil, err
	}
	files["deploy/helm/stallspan/files/rules.yaml"] = files["docs/prometheus/rules.yaml"] // helm reads no file outside
	if files["docs/prometheus/reference.md"], err = writeReference(r); err != nil {
		return nil, err
	}
	if files["semconv/testdata/prometheus.txt"], err = writeNames(r); err != nil {
		return nil, err
	}
	for _, b := range boards() {
		if !r.has(b.needs) {
			continue
		}
		if files["docs/grafana/"+b.file], err = r.writeBoard(b); err != nil {
			return nil, fmt.Errorf("%s: %w", b.file, err)
		}
	}
	return files, nil
}
