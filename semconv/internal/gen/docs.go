package main

import (
	"bytes"
	"regexp"
	"strings"
)

// blankLines are more of them than Markdown needs: what templates leave behind between their parts.
var blankLines = regexp.MustCompile(`\n{3,}`)

// writeMetricsPage gives the text of docs/metrics.md.
func writeMetricsPage(r *registry) ([]byte, error) { return page(r, "metrics.md.tmpl") }

// writeSpansPage gives the text of docs/spans.md.
func writeSpansPage(r *registry) ([]byte, error) { return page(r, "spans.md.tmpl") }

func page(r *registry, name string) ([]byte, error) {
	text, err := r.render(name)
	if err != nil {
		return nil, err
	}
	return append(bytes.TrimSpace(blankLines.ReplaceAll(text, []byte("\n\n"))), '\n'), nil
}

// cell makes text fit for a cell of a Markdown table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// meaning is what a page says of a definition.
func meaning(brief, note string) string { return cell(strings.TrimSpace(brief + " " + note)) }

// origin says who defines a name.
func origin(a annotations) string {
	if version, ok := strings.CutPrefix(a.Stallspan.Origin, "semconv "); ok {
		return "OpenTelemetry " + version
	}
	if a.Stallspan.Origin != "" {
		return "Collector, " + a.Stallspan.Origin
	}
	return "Stallspan"
}

// groupTitle heads a group's table: "attributes.stallspan.window" gives "Every window".
func groupTitle(id string) string { return "Every " + id[strings.LastIndex(id, ".")+1:] }

// anchor is what links to a heading of the same page end in.
func anchor(title string) string { return strings.ReplaceAll(strings.ToLower(title), " ", "-") }

// typeName is an attribute's type as a reader knows it: an enum's values are strings.
func typeName(a *attribute) string {
	if a.Type.Name == "enum" {
		return "string"
	}
	return a.Type.Name
}

// presence says when an attribute is there.
func presence(l level) string {
	switch l.Name {
	case "required":
		return "always"
	case "conditionally_required":
		return "when " + cell(l.When)
	case "recommended":
		return "where known"
	}
	return "on request"
}
