package main

import (
	"os"
	"testing"

	schema "go.opentelemetry.io/otel/schema/v1.1"
)

// The schema file ends with the names of the registry, and none of those that it renames is left.
func TestSchemaFile(t *testing.T) {
	r, err := load(os.DirFS("../../semconv/registry"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := schema.ParseFile("../../semconv/schemas/0.2.0.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if file.SchemaURL != r.Manifest.SchemaURL {
		t.Errorf("the file is of %s, want %s", file.SchemaURL, r.Manifest.SchemaURL)
	}
	metrics := map[string]bool{}
	for _, m := range r.Metrics() {
		metrics[m.Name] = true
	}
	renamed := func(what, from, to string, is func(string) bool) {
		if is(from) || !is(to) {
			t.Errorf("%s %s becomes %s: the registry has the old one: %v, the new one: %v", what, from, to, is(from), is(to))
		}
	}
	isAttribute := func(key string) bool { return r.attributes[key] != nil }
	version := file.Versions["0.2.0"]
	for _, change := range version.All.Changes {
		for from, to := range change.RenameAttributes.AttributeMap {
			renamed("attribute", from, to, isAttribute)
		}
	}
	for _, change := range version.Spans.Changes {
		for from, to := range change.RenameAttributes.AttributeMap {
			renamed("attribute", from, to, isAttribute)
		}
	}
	for _, change := range version.Metrics.Changes {
		for from, to := range change.RenameMetrics {
			renamed("metric", string(from), string(to), func(name string) bool { return metrics[name] })
		}
		if change.RenameAttributes != nil {
			for from, to := range change.RenameAttributes.AttributeMap {
				renamed("attribute", from, to, isAttribute)
			}
		}
	}
}
