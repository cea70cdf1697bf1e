package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
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

// The table of the decision on names: the registry has the new ones, and none of the old ones.
func TestTableOfRenames(t *testing.T) {
	r, err := load(os.DirFS("../../semconv/registry"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/adr/0075-name-as-the-field-does.md")
	if err != nil {
		t.Fatal(err)
	}
	units, attributes := map[string]string{}, slices.Collect(maps.Keys(r.attributes))
	for _, m := range r.Metrics() {
		units[m.Name] = m.Unit
	}
	all := append(slices.Collect(maps.Keys(units)), attributes...)
	// has looks for a name, for what a * stands for, and for one that is short for the end of a name.
	has := func(names []string, name string) bool {
		return slices.ContainsFunc(names, func(other string) bool {
			start, prefix := strings.CutSuffix(name, "*")
			return other == name || prefix && strings.HasPrefix(other, start) ||
				name[0] == '.' && strings.HasSuffix(other, name)
		})
	}
	quoted, rows := regexp.MustCompile("`([^`]+)`"), 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !strings.Contains(cells[0], "`") {
			continue
		}
		rows++
		for _, old := range quoted.FindAllStringSubmatch(cells[0], -1) {
			name := strings.Replace(old[1], "RESOURCE", "io", 1)
			among := all
			if strings.Contains(cells[0], "attributes") {
				among = attributes
			}
			if unit, only := strings.CutPrefix(cells[1], "in "); only && name != "1" {
				if units[name] != strings.Trim(unit, "`") {
					t.Errorf("%s is in %s, the table says %s", name, units[name], unit)
				}
			} else if name[0] != '.' && has(among, name) {
				t.Errorf("the registry has %s, which the table renames", name)
			}
		}
		if strings.HasPrefix(cells[1], "in ") {
			continue
		}
		for _, now := range quoted.FindAllStringSubmatch(cells[1], -1) {
			if !has(all, now[1]) {
				t.Errorf("the registry lacks %s, a new name of the table", now[1])
			}
		}
	}
	if rows < 10 {
		t.Errorf("got %d rows, want the whole table", rows)
	}
}
