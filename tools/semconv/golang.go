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

// writeGo returns the text of generated.go.
func writeGo(r *registry) ([]byte, error) {
	text, err := r.render("generated.go.tmpl")
	if err != nil {
		return nil, err
	}
	return format.Source(text)
}

// goRefs returns a list of references as a Go literal, with as many on a line as fit.
func (r *registry) goRefs(refs []ref) string {
	var lines []string
	line := ""
	for _, use := range r.flatten(refs) {
		typ := goTypes[r.attributes[use.Ref].Type.Name]
		one := fmt.Sprintf("{%sKey, attribute.%s, %t}", goName(use.Ref), typ, use.Level.Name == "required")
		if line != "" && len(line)+len(one) > lineWidth {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += ", "
		}
		line += one
	}
	if len(lines) == 0 && len(line) <= lineWidth-len("Attributes: []AttributeRef{}") {
		return "[]AttributeRef{" + line + "}"
	}
	return "[]AttributeRef{\n" + strings.Join(append(lines, line), ",\n") + ",\n}"
}

// lineWidth is the width of a line of references, in characters.
const lineWidth = 112
