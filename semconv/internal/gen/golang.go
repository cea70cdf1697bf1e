package main

import (
	"bytes"
	"fmt"
	"go/format"
)

// goTypes maps a type of the registry to the name of its attribute.Type.
var goTypes = map[string]string{
	"boolean": "BOOL", "int": "INT64", "double": "FLOAT64", "string": "STRING", "string[]": "STRINGSLICE",
	"enum": "STRING",
}

var goKinds = map[string]string{
	"counter": "Counter", "updowncounter": "UpDownCounter", "gauge": "Gauge", "histogram": "Histogram",
}

// writeGo gives the text of generated.go.
func writeGo(r *registry) ([]byte, error) {
	text, err := r.render("generated.go.tmpl")
	if err != nil {
		return nil, err
	}
	return format.Source(text)
}

// goRefs is the Go literal of a list of references.
func (r *registry) goRefs(refs []ref) string {
	var out bytes.Buffer
	out.WriteString("[]AttributeRef{\n")
	for _, use := range r.flatten(refs) {
		fmt.Fprintf(&out, "{Key: %sKey, Type: attribute.%s", goName(use.Ref), goTypes[r.attributes[use.Ref].Type.Name])
		if use.Level.Name == "required" {
			out.WriteString(", Required: true")
		}
		out.WriteString("},\n")
	}
	out.WriteString("}")
	return out.String()
}
