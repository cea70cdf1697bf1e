package main

import (
	"cmp"
	"maps"
	"slices"
)

// all concatenates one list of each area, sorted by name.
func all[T any](r *registry, list func(*file) []T, name func(*T) string) []T {
	var out []T
	for i := range r.Areas {
		out = append(out, list(&r.Areas[i].file)...)
	}
	slices.SortFunc(out, func(a, b T) int { return cmp.Compare(name(&a), name(&b)) })
	return out
}

// Attributes lists the attributes of every area, by key.
func (r *registry) Attributes() []attribute {
	return all(r, func(f *file) []attribute { return f.Attributes }, func(a *attribute) string { return a.Key })
}

// Metrics lists the metrics of every area, by name.
func (r *registry) Metrics() []metric {
	return all(r, func(f *file) []metric { return f.Metrics }, func(m *metric) string { return m.Name })
}

// Spans lists the spans of every area, by type.
func (r *registry) Spans() []span {
	return all(r, func(f *file) []span { return f.Spans }, func(s *span) string { return s.Type })
}

// Events lists the events of every area, by name.
func (r *registry) Events() []event {
	return all(r, func(f *file) []event { return f.Events }, func(e *event) string { return e.Name })
}

// Entities lists the entities of jobs, or those of senders and machines, by type.
func (r *registry) Entities(ofJobs bool) []entity {
	return all(r, func(f *file) []entity {
		if (f == r.jobs()) != ofJobs {
			return nil
		}
		return f.Entities
	}, func(e *entity) string { return e.Type })
}

// jobs returns the area of jobs, or nil.
func (r *registry) jobs() *file {
	for i := range r.Areas {
		if r.Areas[i].Name == "job" {
			return &r.Areas[i].file
		}
	}
	return nil
}

// flatten replaces references to groups by the references of the groups, and sorts by key. validate has checked the
// references.
func (r *registry) flatten(refs []ref) []ref {
	var flat []ref
	for _, use := range refs {
		if use.RefGroup != "" {
			flat = append(flat, r.flatten(r.groups[use.RefGroup].Attributes)...)
			continue
		}
		flat = append(flat, use)
	}
	slices.SortFunc(flat, func(a, b ref) int { return cmp.Compare(a.Ref, b.Ref) })
	return flat
}

// MetricAttributes lists the attributes of metrics, by key.
func (r *registry) MetricAttributes() []*attribute { return r.used(r.metricRefs()) }

func (r *registry) metricRefs() (refs []ref) {
	for _, m := range r.Metrics() {
		refs = append(refs, m.Attributes...)
	}
	return refs
}

// level returns the weakest requirement level that an attribute has among the metrics: mdatagen knows one of each.
func (r *registry) level(key string) string {
	weakest := 0
	for _, use := range r.flatten(r.metricRefs()) {
		if use.Ref == key {
			weakest = max(weakest, slices.Index(levels, use.Level.Name))
		}
	}
	return levels[weakest]
}

// UsedAttributes lists the attributes of metrics, spans and events, by key.
func (r *registry) UsedAttributes() []*attribute {
	refs := r.metricRefs()
	for _, s := range r.Spans() {
		refs = append(refs, s.Attributes...)
	}
	for _, e := range r.Events() {
		refs = append(refs, e.Attributes...)
	}
	return r.used(refs)
}

func (r *registry) used(refs []ref) []*attribute {
	keys := map[string]bool{}
	for _, use := range r.flatten(refs) {
		keys[use.Ref] = true
	}
	var out []*attribute
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, r.attributes[key])
	}
	return out
}

// own returns a list of references without the groups.
func own(refs []ref) []ref {
	return slices.DeleteFunc(slices.Clone(refs), func(use ref) bool { return use.RefGroup != "" })
}

// SpanGroups lists the attribute groups of spans, by id.
func (r *registry) SpanGroups() []*group {
	ids := map[string]bool{}
	for _, s := range r.Spans() {
		for _, use := range s.Attributes {
			if use.RefGroup != "" {
				ids[use.RefGroup] = true
			}
		}
	}
	var out []*group
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		out = append(out, r.groups[id])
	}
	return out
}
