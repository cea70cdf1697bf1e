package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// blankLines matches the blank lines that templates leave between their parts.
var blankLines = regexp.MustCompile(`\n{3,}`)

// page returns a function that renders the page of a template.
func page(name string) func(*registry) ([]byte, error) {
	return func(r *registry) ([]byte, error) {
		text, err := r.render(name)
		if err != nil {
			return nil, err
		}
		return append(bytes.TrimSpace(blankLines.ReplaceAll(text, []byte("\n\n"))), '\n'), nil
	}
}

// cell escapes text for a cell of a Markdown table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// meaning returns the text of a definition on a page.
func meaning(brief, note string) string { return cell(strings.TrimSpace(brief + " " + note)) }

// origin returns who defines a name.
func origin(a annotations) string {
	if version, ok := strings.CutPrefix(a.Stallspan.Origin, "semconv "); ok {
		return "OpenTelemetry " + version
	}
	if a.Stallspan.Origin == "" {
		return "Stallspan"
	}
	return strings.Replace(a.Stallspan.Origin, "hostmetrics", "Collector, hostmetrics", 1)
}

// groupTitle returns the heading of a group's table: "attributes.stallspan.window" gives "Every window".
func groupTitle(id string) string { return "Every " + id[strings.LastIndex(id, ".")+1:] }

// anchor returns the anchor of a heading.
func anchor(title string) string { return strings.ReplaceAll(strings.ToLower(title), " ", "-") }

// typeName returns the type of an attribute for readers: the values of an enum are strings.
func typeName(a *attribute) string {
	if a.Type.Name == "enum" {
		return "string"
	}
	return a.Type.Name
}

// keys lists attributes: those that are always present in bold, others with their condition.
func keys(refs []ref) string {
	var all []string
	for _, use := range refs {
		key := "`" + use.Ref + "`"
		switch use.Level.Name {
		case "required":
			key = "**" + key + "**"
		case "conditionally_required":
			key += " (when " + cell(use.Level.When) + ")"
		}
		all = append(all, key)
	}
	return strings.Join(all, ", ")
}

// Upstream returns the origin of most names that are not Stallspan's own.
func (r *registry) Upstream() string {
	counts := map[string]int{}
	most := ""
	for _, m := range r.Metrics() {
		if m.Annotations.Stallspan.Origin != "" {
			name := origin(m.Annotations)
			if counts[name]++; counts[name] > counts[most] {
				most = name
			}
		}
	}
	return most
}

// otherSource names the origin of a definition if it is neither Stallspan nor the usual one.
func (r *registry) otherSource(a annotations) string {
	if a.Stallspan.Origin == "" || origin(a) == r.Upstream() {
		return ""
	}
	return " (" + origin(a) + ".)"
}

// shared returns the optional attributes that at least half of the metrics have, and at least three of them.
func (r *registry) shared(metrics []metric) []ref {
	counts := map[string]int{}
	var found []ref
	for _, m := range metrics {
		for _, use := range r.flatten(m.Attributes) {
			if use.Level.Name == "required" {
				continue
			}
			if counts[use.Ref]++; counts[use.Ref] == max(3, (len(metrics)+1)/2) {
				found = append(found, use)
			}
		}
	}
	return r.flatten(found)
}

// common returns the attributes that every point of all metrics of an area has, if there are several.
func (r *registry) common(metrics []metric) []ref {
	if len(metrics) < 2 {
		return nil
	}
	return slices.DeleteFunc(r.flatten(metrics[0].Attributes), func(use ref) bool {
		return use.Level.Name != "required" || slices.ContainsFunc(metrics, func(m metric) bool {
			return !slices.ContainsFunc(r.flatten(m.Attributes), func(other ref) bool {
				return other.Ref == use.Ref && other.Level.Name == "required"
			})
		})
	})
}

// without removes the attributes that the text above a list has, at the same level.
func (r *registry) without(listed, refs []ref) []ref {
	return slices.DeleteFunc(r.flatten(refs), func(use ref) bool {
		return slices.ContainsFunc(listed, func(l ref) bool {
			return l.Ref == use.Ref && (l.Level.Name == "required") == (use.Level.Name == "required")
		})
	})
}

// ofEvent removes the attributes that events have in common, which the page says once.
func ofEvent(refs []ref) []ref {
	return slices.DeleteFunc(refs, func(use ref) bool {
		return slices.Contains([]string{"stallspan.event.began", "stallspan.event.resolved", "stallspan.event.test"}, use.Ref)
	})
}

// values lists the values of an enumeration. What they mean is on the pages about verdicts, loads and drives.
func values(a *attribute) string {
	var all []string
	for _, m := range a.Type.Members {
		all = append(all, fmt.Sprintf("`%v`", m.Value))
	}
	if all == nil {
		return ""
	}
	return " " + strings.Join(all, ", ") + "."
}
