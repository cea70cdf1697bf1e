package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

const goodManifest = `
file_format: definition_manifest/2.0
schema_url: https://example.com/schemas/0.1.0
stability: development
`

// goodFile is the least that uses every kind of definition. Each case below breaks one thing in it.
const goodFile = `
file_format: definition/2
attributes:
  - key: host.id
    type: string
    brief: The host.
    stability: development
    examples: [a]
    annotations: {stallspan: {origin: semconv 1.43.0}}
  - key: stallspan.count
    type: int
    brief: A count.
    note: Of things.
    stability: development
    examples: [1]
  - key: stallspan.kind
    type:
      members:
        - {id: one, value: one, brief: One., stability: development}
        - {id: two, value: two, brief: Two., stability: development}
    brief: A kind.
    stability: development
  - key: stallspan.names
    type: string[]
    brief: Names.
    stability: development
    examples: [[a, b]]
  - key: stallspan.ratio
    type: double
    brief: A ratio.
    stability: development
    examples: [0.5, 1]
  - key: stallspan.slow
    type: boolean
    brief: Slow or not.
    stability: development
    examples: [true]
attribute_groups:
  - id: attributes.stallspan.thing
    visibility: internal
    attributes:
      - ref: stallspan.slow
        requirement_level: recommended
entities:
  - type: host
    brief: The host.
    stability: development
    identity:
      - ref: host.id
metrics:
  - name: stallspan.thing.time
    instrument: counter
    unit: s
    brief: Time of things.
    stability: development
    annotations: {code_generation: {metric_value_type: double}}
    attributes:
      - ref: stallspan.kind
        requirement_level: required
    entity_associations: [host]
spans:
  - type: stallspan.thing
    kind: internal
    name:
      note: "thing {stallspan.kind}"
    brief: A thing.
    stability: development
    attributes:
      - ref_group: attributes.stallspan.thing
      - ref: stallspan.count
        requirement_level:
          conditionally_required: it is known
events:
  - name: stallspan.thing.done
    brief: A thing is done.
    stability: development
    attributes:
      - ref: stallspan.names
        requirement_level: opt_in
`

func folder(manifest, file string) fstest.MapFS {
	return fstest.MapFS{
		manifestName: {Data: []byte(manifest)},
		"thing.yaml": {Data: []byte(file)},
	}
}

func TestValidateAcceptsGoodRegistry(t *testing.T) {
	if _, err := load(folder(goodManifest, goodFile)); err != nil {
		t.Fatal(err)
	}
}

func TestValidateRefuses(t *testing.T) {
	const second = "\n  - key: stallspan.zeta\n    type: int\n    brief: Zeta.\n    stability: development\n    " +
		"examples: [1]\n"
	tests := []struct {
		name, old, new string // what of goodFile becomes what
		want           string // part of the error
	}{
		{"unknown key", "unit: s\n", "unit: s\n    units: s\n", "field units not found"},
		{"unknown section", "events:\n", "imports: {}\nevents:\n", "field imports not found"},
		{"unknown key in an enum", "{id: one,", "{ident: x, id: one,", "field ident not found"},
		{"unknown key in a requirement", "conditionally_required: it", "if: it", "field if not found"},
		{"unknown annotation", "{metric_value_type: double}", "{type: double}", "field type not found"},
		{"key twice", "unit: s\n", "unit: s\n    unit: s\n", "already defined"},
		{"two documents", "\nevents:", "\n---\nevents:", "more than one document"},
		{"not YAML", "metrics:\n", "metrics: [\n", "yaml:"},
		{"file format", "definition/2", "definition/1", "must be definition/2"},

		{"attribute twice", "attribute_groups:\n", second[1:] + second[1:] + "attribute_groups:\n", "attribute stallspan.zeta is defined twice"},
		{"group twice", "entities:\n", "  - {id: attributes.stallspan.thing, visibility: internal}\nentities:\n", "group attributes.stallspan.thing is defined twice"},
		{"entity twice", "metrics:\n", "  - {type: host, brief: H., stability: stable, identity: [{ref: host.id}]}\nmetrics:\n", "entity host is defined twice"},
		{"metric twice", "metrics:\n", "metrics:\n  - {name: stallspan.thing.time, instrument: counter, unit: s, brief: T., stability: development, annotations: {code_generation: {metric_value_type: int}}}\n", "both become ThingTime in Go"},
		{"same Go name", "key: stallspan.count", "key: stallspan.host.id", "both become HostIDKey in Go"},
		{"not sorted", "key: stallspan.names", "key: stallspan.zzz", "stallspan.ratio is after stallspan.zzz"},

		{"attribute is a namespace", "key: stallspan.kind\n", "key: stallspan.count.kind\n", "attribute stallspan.count is a namespace of stallspan.count.kind"},
		{"metric is a namespace", "metrics:\n", "metrics:\n  - {name: stallspan.thing, instrument: gauge, unit: s, brief: T., stability: development, annotations: {code_generation: {metric_value_type: int}}}\n", "metric stallspan.thing is a namespace of stallspan.thing.time"},
		{"own attribute under a foreign root", "key: stallspan.count", "key: host.count", `begin our own name with "stallspan."`},
		{"own metric under a foreign root", "name: stallspan.thing.time", "name: gpu.time", `begin our own name with "stallspan."`},
		{"own event under a foreign root", "name: stallspan.thing.done", "name: thing.done", `begin our own name with "stallspan."`},
		{"own name with an origin", "examples: [0.5, 1]", "examples: [0.5]\n    annotations: {stallspan: {origin: semconv 1.43.0}}", "cannot define a name of ours"},
		{"unknown origin", "semconv 1.43.0", "somewhere", `origin "somewhere" is unknown`},
		{"name with capitals", "key: stallspan.names", "key: stallspan.Names", "lower-case words"},
		{"empty name", "key: stallspan.names", "key: ''", "lower-case words"},

		{"unknown attribute", "ref: stallspan.names", "ref: stallspan.name", "attribute stallspan.name is not defined"},
		{"unknown group", "ref_group: attributes.stallspan.thing", "ref_group: attributes.thing", "group attributes.thing is not defined"},
		{"unknown attribute in a group", "      - ref: stallspan.slow", "      - ref: stallspan.fast", "attribute stallspan.fast is not defined"},
		{"unknown attribute in an entity", "- ref: host.id", "- ref: host.name", "attribute host.name is not defined"},
		{"unknown entity", "associations: [host]", "associations: [hots]", "entity hots is not defined"},
		{"unknown attribute in a span's name", "thing {stallspan.kind}", "thing {kind}", "{kind}, which is not an attribute"},
		{"open brace in a span's name", "thing {stallspan.kind}", "thing {stallspan.kind", "which is not an attribute"},
		{"attribute twice on a signal", "- ref: stallspan.count", "- ref: stallspan.slow", "attribute stallspan.slow is repeated"},
		{"reference to nothing", "- ref: stallspan.names\n        requirement_level", "- requirement_level", "either ref or ref_group"},
		{"group in a group", "      - ref: stallspan.slow", "      - ref_group: attributes.stallspan.thing", "one level is enough"},
		{"public group", "visibility: internal", "visibility: public", "visibility must be internal"},

		{"no brief", "brief: A count.", "brief: ''", "the brief must be one line and end with a period"},
		{"brief without period", "brief: Time of things.", "brief: Time of things", "metric stallspan.thing.time: the brief must"},
		{"brief of a member without period", "brief: One.", "brief: One", "member one: the brief must"},
		{"brief of two lines", "brief: A thing.", `brief: "A\nthing."`, "span stallspan.thing: the brief must"},
		{"note without period", "note: Of things.", "note: Of things", "the note must be one line"},
		{"no stability", "    brief: A ratio.\n    stability: development\n", "    brief: A ratio.\n", `stability "" is not one of`},
		{"no such stability", "stability: development\n    examples: [true]", "stability: final\n    examples: [true]", `stability "final" is not one of`},

		{"no such type", "type: double\n", "type: float\n", `type "float" is not in use here`},
		{"empty enum", "      members:\n        - {id: one, value: one, brief: One., stability: development}\n        - {id: two, value: two, brief: Two., stability: development}", "      members: []", "an enum needs members"},
		{"value twice", "value: two", "value: one", `value "one" is empty or repeated`},
		{"no value", "value: two, ", "", `value "" is empty or repeated`},
		{"id twice", "id: two", "id: one", "both become KindOne in Go"},
		{"id with a dot", "id: two", "id: t.wo", "lower-case words"},
		{"no example", "    examples: [true]\n", "", "give at least one example"},
		{"example of the wrong type", "examples: [1]", "examples: [one]", "example one is not of type int"},
		{"fraction for an int", "examples: [1]", "examples: [1.5]", "example 1.5 is not of type int"},
		{"list of the wrong type", "[[a, b]]", "[[a, 1]]", "is not of type string[]"},
		{"null for an example", "examples: [true]", "examples: [null]", "is not of type boolean"},

		{"no unit", "unit: s", "unit: ''", `unit "" is not one of the UCUM codes`},
		{"unit in words", "unit: s", "unit: seconds", `unit "seconds" is not one of the UCUM codes`},
		{"no such instrument", "instrument: counter", "instrument: summary", `instrument "summary" is not one of`},
		{"no value type", "    annotations: {code_generation: {metric_value_type: double}}\n", "", "must be int or double"},
		{"no such value type", "metric_value_type: double", "metric_value_type: float", "must be int or double"},
		{"no requirement level", "- ref: stallspan.kind\n        requirement_level: required", "- ref: stallspan.kind", `requirement_level "" is not one of`},
		{"no such requirement level", "opt_in", "maybe", `requirement_level "maybe" is not one of`},
		{"no condition", "conditionally_required: it is known", "conditionally_required: ''", "a condition needs the level"},
		{"span of another kind", "kind: internal", "kind: server", "kind must be internal or client"},
		{"span without a name", `note: "thing {stallspan.kind}"`, `note: ""`, "describe the name of the span"},
		{"entity without identity", "    identity:\n      - ref: host.id\n", "", "entity host has no identity"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if n := strings.Count(goodFile, test.old); n != 1 {
				t.Fatalf("%q is %d times in the good registry, not once", test.old, n)
			}
			_, err := load(folder(goodManifest, strings.Replace(goodFile, test.old, test.new, 1)))
			refused(t, err, test.want)
		})
	}
}

func TestValidateRefusesManifest(t *testing.T) {
	tests := []struct{ name, old, new, want string }{
		{"unknown key", "stability:", "name: x\nstability:", "field name not found"},
		{"file format", "definition_manifest/2.0", "manifest/2.0", "must be definition_manifest/2.0"},
		{"no version", "/0.1.0", "", "must be https and end in a version"},
		{"not encrypted", "https:", "http:", "must be https and end in a version"},
		{"stability", "development", "new", `stability "new" is not one of`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := load(folder(strings.Replace(goodManifest, test.old, test.new, 1), goodFile))
			refused(t, err, test.want)
		})
	}
}

func refused(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatal("accepted")
	}
	if !strings.Contains(err.Error(), want) {
		t.Fatalf("error %q does not have %q", err, want)
	}
}

// A registry that passes must give every output, and no text may bring the generator down.
func FuzzLoad(f *testing.F) {
	f.Add(goodFile)
	f.Add("")
	f.Add("file_format: definition/2\nattributes: [{key: .., type: {members: [{id: _}]}}]\n")
	f.Add("attributes: [{key: a, type: [x]}]\nspans: [{name: {note: '}{'}}]\n")
	f.Add("attribute_groups: [{id: g, attributes: [{ref_group: g}]}]\nmetrics: [{attributes: [{ref_group: g}]}]\n")
	f.Add("a: &a [*a]\n")
	f.Fuzz(func(t *testing.T, file string) {
		r, err := load(folder(goodManifest, file))
		if err != nil {
			return
		}
		for _, out := range outputs {
			if _, err := out.write(r); err != nil {
				t.Errorf("write %s: %v", out.path, err)
			}
		}
	})
}
