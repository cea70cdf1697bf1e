package main

import (
	"bytes"
	"embed"
	"slices"
	"strings"
	"text/template"
)

//go:embed templates/*.tmpl
var templates embed.FS

// render executes a template with the registry.
func (r *registry) render(name string) ([]byte, error) {
	t, err := template.New(name).Funcs(template.FuncMap{
		"goName":      goName,
		"goKind":      func(m metric) string { return goKinds[m.Instrument] },
		"goRefs":      r.goRefs,
		"goNames":     goNames,
		"anchor":      anchor,
		"cell":        cell,
		"groupTitle":  groupTitle,
		"meaning":     meaning,
		"origin":      origin,
		"typeName":    typeName,
		"attribute":   func(use ref) *attribute { return r.attributes[use.Ref] },
		"flatten":     r.flatten,
		"own":         own,
		"keys":        keys,
		"level":       r.level,
		"shared":      r.shared,
		"common":      r.common,
		"ofEvent":     ofEvent,
		"values":      values,
		"without":     r.without,
		"otherSource": r.otherSource,
		"rebase":      rebase,
		"all":         func(e entity) []ref { return slices.Concat(e.Identity, e.Description) },
	}).ParseFS(templates, "templates/*.tmpl")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.ExecuteTemplate(&out, name, r)
	return out.Bytes(), err
}

// rebase makes links from docs into those from a folder next to it.
func rebase(text string) string { return strings.ReplaceAll(text, "](", "](../docs/") }
