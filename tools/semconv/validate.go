package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	namePattern   = regexp.MustCompile(`^[a-z][a-z0-9]*([._][a-z0-9]+)*$`)
	idPattern     = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	unitPattern   = regexp.MustCompile(`^(1|By|s|Hz|W|J|Cel|\{[a-z]+\})(/s)?$`) // the UCUM codes in use here
	originPattern = regexp.MustCompile(`^(semconv \d+\.\d+\.\d+|hostmetrics receiver|semantic-conventions pull request \d+|NeMo Lens|public use)$`)
	urlPattern    = regexp.MustCompile(`^https://[^/]+/.*/\d+\.\d+\.\d+$`)

	stabilities = []string{"development", "alpha", "beta", "release_candidate", "stable"}
	levels      = []string{"required", "conditionally_required", "recommended", "opt_in"}
)

// checker collects all errors, so that one run shows them all.
type checker struct {
	*registry
	file   string
	errs   []error
	idents map[string]string // Go identifier to original name
}

func (c *checker) failf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s.yaml: %s", c.file, fmt.Sprintf(format, args...)))
}

// validate checks the registry and fills its indexes.
func (r *registry) validate() error {
	c := &checker{registry: r, file: "manifest", idents: map[string]string{}}
	if r.Manifest.FileFormat != "definition_manifest/2.0" {
		c.failf("file_format is %q: it must be definition_manifest/2.0", r.Manifest.FileFormat)
	}
	if !urlPattern.MatchString(r.Manifest.SchemaURL) {
		c.failf("schema_url %q: it must be https and end in a version such as /0.1.0", r.Manifest.SchemaURL)
	}
	c.stability("the registry", r.Manifest.Stability)
	c.each(c.index)
	c.each(c.definitions)
	c.namespaces("attribute", slices.Sorted(maps.Keys(r.attributes)))
	var metrics []string
	for _, m := range r.Metrics() {
		if m.Annotations.Stallspan.Origin == "" { // upstream breaks the rule itself: hw.temperature and hw.temperature.limit
			metrics = append(metrics, m.Name)
		}
	}
	c.namespaces("metric", metrics)
	c.file = "*"
	for _, name := range metrics {
		if c.attributes[name] != nil {
			c.failf("%s is a metric and an attribute: rename one of the two", name)
		}
	}
	return errors.Join(c.errs...)
}

func (c *checker) each(check func(*file)) {
	for i := range c.Areas {
		c.file = c.Areas[i].Name
		check(&c.Areas[i].file)
	}
}

// index fills the indexes for references.
func (c *checker) index(f *file) {
	if f.FileFormat != "definition/2" {
		c.failf("file_format is %q: it must be definition/2", f.FileFormat)
	}
	for i := range f.Attributes {
		a := &f.Attributes[i]
		if c.attributes[a.Key] != nil {
			c.failf("attribute %s is defined twice", a.Key)
		}
		c.attributes[a.Key] = a
	}
	for i := range f.Groups {
		g := &f.Groups[i]
		if c.groups[g.ID] != nil {
			c.failf("attribute group %s is defined twice", g.ID)
		}
		c.groups[g.ID] = g
	}
	for i := range f.Entities {
		e := &f.Entities[i]
		if c.entities[e.Type] != nil {
			c.failf("entity %s is defined twice", e.Type)
		}
		c.entities[e.Type] = e
	}
}

func (c *checker) definitions(f *file) {
	for i := range f.Attributes {
		c.attribute(&f.Attributes[i])
	}
	for i := range f.Groups {
		g := &f.Groups[i]
		if g.Visibility != "internal" {
			c.failf("attribute group %s: visibility must be internal", g.ID)
		}
		for _, use := range g.Attributes {
			if use.RefGroup != "" {
				c.failf("attribute group %s refers to another group: one level is enough", g.ID)
			}
		}
		c.refs("attribute group "+g.ID, g.Attributes)
	}
	for i := range f.Entities {
		e := &f.Entities[i]
		c.common("entity "+e.Type, &e.common)
		c.refs("entity "+e.Type, slices.Concat(e.Identity, e.Description))
		if len(e.Identity) == 0 {
			c.failf("entity %s has no identity", e.Type)
		}
	}
	for i := range f.Metrics {
		c.metric(&f.Metrics[i])
	}
	for i := range f.Spans {
		c.span(&f.Spans[i])
	}
	for i := range f.Events {
		e := &f.Events[i]
		c.signal("event", e.Name, "Event", &e.common, e.Attributes, e.Entities)
	}
	sorted(c, "attribute", f.Attributes, func(a attribute) string { return a.Key })
	sorted(c, "metric", f.Metrics, func(m metric) string { return m.Name })
	sorted(c, "span", f.Spans, func(s span) string { return s.Type })
	sorted(c, "event", f.Events, func(e event) string { return e.Name })
	sorted(c, "entity", f.Entities, func(e entity) string { return e.Type })
}

// sorted checks the order of a list, so that a new name has one place.
func sorted[T any](c *checker, what string, list []T, name func(T) string) {
	for i := 1; i < len(list); i++ {
		if a, b := name(list[i-1]), name(list[i]); a > b {
			c.failf("%s %s is after %s: sort by name", what, b, a)
		}
	}
}

// namespaces refuses a name that is the prefix of another: backends that convert dots to nested objects could keep only
// one of the two.
func (c *checker) namespaces(what string, names []string) {
	c.file = "*"
	for _, inner := range names {
		for _, outer := range names {
			if strings.HasPrefix(inner, outer+".") {
				c.failf("%s %s is a namespace of %s: rename one of the two", what, outer, inner)
			}
		}
	}
}
