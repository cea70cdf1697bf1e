package main

import (
	"fmt"
	"go/format"
	"strings"
)

// goTypes maps a type of the registry to the name of its attribute.Type.
var goTypes = map[string]string{
	"boolean": "BOOL", "int": "INT64", "double": "FLOAT64", "string": "STRING", "string[]": "STRINGSLICE",
	"enum": "STRING",
}

var goKinds = map[string]string{
	"counter": "Counter", "updowncounter": "UpDownCounter", "gauge": "Gauge", "histogram": "Histogram",
}

// goFile returns the function that writes a file in Go from a template.
func goFile(template string) func(*registry) ([]byte, error) {
	return func(r *registry) ([]byte, error) {
		text, err := r.render(template)
		if err != nil {
			return nil, err
		}
		return format.Source(text)
	}
}

// goRefs returns a list of references as the braces of a Go literal. With keys, its elements name their fields, as
// those of another package do.
func (r *registry) goRefs(refs []ref, keys bool) string {
	form := "{%q, attribute.%s, %t}"
	if keys {
		form = "{Key: %q, Type: attribute.%s, Required: %t}"
	}
	var all []string
	for _, use := range r.flatten(refs) {
		typ := goTypes[r.attributes[use.Ref].Type.Name]
		all = append(all, fmt.Sprintf(form, use.Ref, typ, use.Level.Name == "required"))
	}
	return "{" + fill(all) + "}"
}

// goNames returns the names of metrics as the elements of a Go literal.
func goNames(r *registry) string {
	var all []string
	for _, m := range r.Metrics() {
		all = append(all, goName(m.Name))
	}
	return fill(all)
}

// fill joins the elements of a Go literal, with as many on a line as fit.
func fill(all []string) string {
	var lines []string
	line := ""
	for _, one := range all {
		if line != "" && len(line)+len(one) > lineWidth {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += ", "
		}
		line += one
	}
	if lines = append(lines, line); len(lines) == 1 && len(line) <= lineWidth/2 {
		return line
	}
	return "\n" + strings.Join(lines, ",\n") + ",\n"
}

// lineWidth is the width of a line of elements, in characters.
const lineWidth = 112
