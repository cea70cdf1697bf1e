package main

import (
	"slices"
	"strings"
	"unicode"
)

// common checks the keys of every definition.
func (c *checker) common(what string, d *common) {
	c.brief(what, d.Brief)
	if d.Note != "" && !isSentence(d.Note) {
		c.failf("%s: the note must be one line and end with a period", what)
	}
	c.stability(what, d.Stability)
}

func (c *checker) brief(what, brief string) {
	if !isSentence(brief) {
		c.failf("%s: the brief must be one line and end with a period", what)
	}
}

// isSentence reports whether text fits into a line comment, a cell of a table and the description of a metric.
func isSentence(text string) bool { return strings.HasSuffix(text, ".") && isLine(text) }

func isLine(text string) bool { return !strings.ContainsFunc(text, unicode.IsControl) }

func (c *checker) stability(what, stability string) {
	if !slices.Contains(stabilities, stability) {
		c.failf("%s: stability %q is not one of %v", what, stability, stabilities)
	}
}

// name checks a name and its origin: our own names begin with our prefix, all others have an origin. suffix is the
// suffix of the Go identifier.
func (c *checker) name(what, name, suffix, origin string) {
	if !namePattern.MatchString(name) {
		c.failf("%s: write the name as lower-case words joined by dots and underscores", what)
		return
	}
	switch own := strings.HasPrefix(name, ownPrefix); {
	case origin == "" && !own:
		c.failf("%s: begin our own name with %q, and give an upstream name its origin", what, ownPrefix)
	case origin != "" && own:
		c.failf("%s: %q cannot define a name of ours", what, origin)
	case origin != "" && !originPattern.MatchString(origin):
		c.failf("%s: origin %q is unknown", what, origin)
	}
	c.ident(what, goName(name)+suffix)
}

// ident refuses a Go identifier of two definitions. So it also finds a repeated definition.
func (c *checker) ident(what, ident string) {
	if other, taken := c.idents[ident]; taken {
		c.failf("%s and %s both become %s in Go: rename one of the two", other, what, ident)
	}
	c.idents[ident] = what
}

func (c *checker) attribute(a *attribute) {
	what := "attribute " + a.Key
	c.name(what, a.Key, "Key", a.Annotations.Stallspan.Origin)
	c.common(what, &a.common)
	if goTypes[a.Type.Name] == "" {
		c.failf("%s: type %q is not in use here", what, a.Type.Name)
		return
	}
	if a.Type.Name == "enum" {
		c.members(a)
		return
	}
	if len(a.Examples) == 0 {
		c.failf("%s: give at least one example", what)
	}
	for _, example := range a.Examples {
		if !fits(example, a.Type.Name) {
			c.failf("%s: example %v is not of type %s", what, example, a.Type.Name)
		}
	}
}

func (c *checker) members(a *attribute) {
	if len(a.Type.Members) == 0 {
		c.failf("attribute %s: an enum needs members", a.Key)
	}
	values := map[string]bool{}
	for _, m := range a.Type.Members {
		what := "attribute " + a.Key + ", member " + m.ID
		if !idPattern.MatchString(m.ID) {
			c.failf("%s: write the id as lower-case words joined by underscores", what)
			continue
		}
		if m.Value == "" || values[m.Value] {
			c.failf("%s: value %q is empty or repeated", what, m.Value)
		}
		values[m.Value] = true
		c.brief(what, m.Brief)
		c.stability(what, m.Stability)
		c.ident(what, goName(a.Key)+goName(m.ID))
	}
}

// fits reports whether an example is a value of the type.
func fits(example any, kind string) bool {
	switch v := example.(type) {
	case bool:
		return kind == "boolean"
	case int:
		return kind == "int" || kind == "double"
	case float64:
		return kind == "double"
	case string:
		return kind == "string"
	case []any:
		return kind == "string[]" && !slices.ContainsFunc(v, func(e any) bool { return !fits(e, "string") })
	}
	return false
}

func (c *checker) metric(m *metric) {
	what := "metric " + m.Name
	c.signal("metric", m.Name, "", &m.common, m.Attributes, m.Entities)
	if goKinds[m.Instrument] == "" {
		c.failf("%s: instrument %q is not one of counter, updowncounter, gauge, histogram", what, m.Instrument)
	}
	if !unitPattern.MatchString(m.Unit) {
		c.failf("%s: unit %q is not one of the UCUM codes in use", what, m.Unit)
	}
	if kind := m.Annotations.CodeGeneration.MetricValueType; kind != "int" && kind != "double" {
		c.failf("%s: annotations.code_generation.metric_value_type must be int or double", what)
	}
}

func (c *checker) span(s *span) {
	c.signal("span", s.Type, "Span", &s.common, s.Attributes, s.Entities)
	if s.Kind != "internal" && s.Kind != "client" {
		c.failf("span %s: kind must be internal or client", s.Type)
	}
	if s.Name.Note == "" || !isLine(s.Name.Note) {
		c.failf("span %s: name.note must describe the name of the span in one line", s.Type)
	}
	for _, part := range strings.Split(s.Name.Note, "{")[1:] {
		if key, _, closed := strings.Cut(part, "}"); !closed || c.attributes[key] == nil {
			c.failf("span %s: its name uses {%s, which is not an attribute", s.Type, part)
		}
	}
}

// signal checks the keys that metrics, spans and events share.
func (c *checker) signal(kind, name, suffix string, d *common, refs []ref, entities []string) {
	what := kind + " " + name
	c.name(what, name, suffix, d.Annotations.Stallspan.Origin)
	c.common(what, d)
	c.refs(what, refs)
	for _, e := range entities {
		if c.entities[e] == nil {
			c.failf("%s: entity %s is not defined", what, e)
		}
	}
}

// refs checks a list of references with those of its groups.
func (c *checker) refs(what string, refs []ref) {
	seen := map[string]bool{}
	var use func(u ref, depth int)
	use = func(u ref, depth int) {
		switch {
		case (u.Ref == "") == (u.RefGroup == ""):
			c.failf("%s: give a reference either ref or ref_group", what)
		case u.RefGroup != "" && c.groups[u.RefGroup] == nil:
			c.failf("%s: attribute group %s is not defined", what, u.RefGroup)
		case u.RefGroup != "" && depth == 0:
			for _, inner := range c.groups[u.RefGroup].Attributes {
				use(inner, depth+1)
			}
		case u.RefGroup != "": // a group within a group is refused at its definition
		case c.attributes[u.Ref] == nil:
			c.failf("%s: attribute %s is not defined", what, u.Ref)
		case seen[u.Ref]:
			c.failf("%s: attribute %s is repeated", what, u.Ref)
		default:
			seen[u.Ref] = true
			c.level(what+", "+u.Ref, u.Level)
		}
	}
	for _, u := range refs {
		use(u, 0)
	}
}

func (c *checker) level(what string, l level) {
	if l.Name == "" && strings.HasPrefix(what, "entity ") {
		return // all attributes of an entity identify it
	}
	if !slices.Contains(levels, l.Name) {
		c.failf("%s: requirement_level %q is not one of %v", what, l.Name, levels)
	}
	if (l.Name == "conditionally_required") != (l.When != "") || !isLine(l.When) {
		c.failf("%s: a condition needs the level conditionally_required, and the level needs a condition", what)
	}
}
