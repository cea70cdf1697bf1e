package main

import (
	"fmt"
	"io/fs"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"
)

// registry is the part of semconv/registry that names need. It is read from the YAML and not from the package semconv,
// which the same `go generate` may be about to write again.
type registry struct {
	metrics    map[string]*metric
	attributes map[string]*attribute
	resource   map[string]bool // attributes of entities: of the whole resource, in addition to those of metrics
	spans      map[string]bool // attributes that some span may carry
}

type metric struct {
	Name       string `yaml:"name"`
	Instrument string `yaml:"instrument"`
	Unit       string `yaml:"unit"`
	Brief      string `yaml:"brief"`
	Attributes []ref  `yaml:"attributes"`

	keys []string // Attributes, with those of groups, sorted
}

type attribute struct {
	Key  string    `yaml:"key"`
	Type yaml.Node `yaml:"type"`

	values []string // of an enum; none for any other type
}

type ref struct {
	Ref   string `yaml:"ref"`
	Group string `yaml:"ref_group"`
}

type withRefs struct {
	ID         string `yaml:"id"`
	Attributes []ref  `yaml:"attributes"`
}

// file is one file of the registry. tools/semconv checks it.
type file struct {
	Attributes []*attribute `yaml:"attributes"`
	Groups     []withRefs   `yaml:"attribute_groups"`
	Metrics    []*metric    `yaml:"metrics"`
	Spans      []withRefs   `yaml:"spans"`
	Entities   []struct {
		Identity    []ref `yaml:"identity"`
		Description []ref `yaml:"description"`
	} `yaml:"entities"`
}

// load reads every YAML file at the root of dir.
func load(dir fs.FS) (*registry, error) {
	paths, err := fs.Glob(dir, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all file
	for _, name := range paths {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		var f file
		if err := yaml.Unmarshal(text, &f); err != nil {
			return nil, fmt.Errorf("%s: %w", path.Base(name), err)
		}
		all.Attributes = append(all.Attributes, f.Attributes...)
		all.Groups = append(all.Groups, f.Groups...)
		all.Metrics = append(all.Metrics, f.Metrics...)
		all.Spans = append(all.Spans, f.Spans...)
		all.Entities = append(all.Entities, f.Entities...)
	}
	if len(all.Metrics) == 0 {
		return nil, fmt.Errorf("no metrics: this is no registry; say with -root where the repository is")
	}
	return all.index()
}

func (f *file) index() (*registry, error) {
	r := &registry{map[string]*metric{}, map[string]*attribute{}, map[string]bool{}, map[string]bool{}}
	for _, a := range f.Attributes {
		if a.Type.Kind == yaml.MappingNode {
			var enum struct{ Members []struct{ Value string } }
			if err := a.Type.Decode(&enum); err != nil {
				return nil, fmt.Errorf("%s: %w", a.Key, err)
			}
			for _, m := range enum.Members {
				a.values = append(a.values, m.Value)
			}
		}
		r.attributes[a.Key] = a
	}
	groups := map[string][]ref{}
	for _, g := range f.Groups {
		groups[g.ID] = g.Attributes
	}
	for _, m := range f.Metrics {
		m.keys = flatten(m.Attributes, groups)
		r.metrics[m.Name] = m
	}
	for _, s := range f.Spans {
		for _, key := range flatten(s.Attributes, groups) {
			r.spans[key] = true
		}
	}
	for _, e := range f.Entities {
		for _, key := range flatten(slices.Concat(e.Identity, e.Description), nil) {
			r.resource[key] = true
		}
	}
	return r, nil
}

// flatten resolves refs to keys. A group holds no groups: tools/semconv refuses that.
func flatten(refs []ref, groups map[string][]ref) (keys []string) {
	for _, u := range refs {
		if u.Group == "" {
			keys = append(keys, u.Ref)
			continue
		}
		for _, inner := range groups[u.Group] {
			keys = append(keys, inner.Ref)
		}
	}
	slices.Sort(keys)
	return keys
}
