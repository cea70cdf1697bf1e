package main

import "go.yaml.in/yaml/v3"

// file is one YAML file of the registry, with the part of the format definition/2 that we use. Other keys are refused
// as unknown, so that no key is silently without effect.
type file struct {
	FileFormat string      `yaml:"file_format"`
	Attributes []attribute `yaml:"attributes"`
	Groups     []group     `yaml:"attribute_groups"`
	Entities   []entity    `yaml:"entities"`
	Metrics    []metric    `yaml:"metrics"`
	Spans      []span      `yaml:"spans"`
	Events     []event     `yaml:"events"`
}

// manifest describes the registry.
type manifest struct {
	FileFormat  string `yaml:"file_format"`
	SchemaURL   string `yaml:"schema_url"`
	Description string `yaml:"description"`
	Stability   string `yaml:"stability"`
}

// common has the keys of every definition.
type common struct {
	Brief       string      `yaml:"brief"`
	Note        string      `yaml:"note"`
	Stability   string      `yaml:"stability"`
	Annotations annotations `yaml:"annotations"`
}

// annotations are free-form in the format. We use these.
type annotations struct {
	CodeGeneration struct {
		MetricValueType string `yaml:"metric_value_type"` // "int" or "double", on every metric
	} `yaml:"code_generation"`
	Stallspan struct {
		Origin string `yaml:"origin"` // who defines the name; empty for our own
		OptIn  bool   `yaml:"opt_in"` // of a metric: emitted only if the configuration enables it
	} `yaml:"stallspan"`
}

type attribute struct {
	Key      string    `yaml:"key"`
	Type     valueType `yaml:"type"`
	Examples []any     `yaml:"examples"`
	common   `yaml:",inline"`
}

// valueType is the name of a type, or "enum" with members.
type valueType struct {
	Name    string
	Members []member
}

type member struct {
	ID        string `yaml:"id"`
	Value     string `yaml:"value"`
	Brief     string `yaml:"brief"`
	Stability string `yaml:"stability"`
}

// ref is a use of an attribute, or of all the attributes of a group.
type ref struct {
	Ref      string `yaml:"ref"`
	RefGroup string `yaml:"ref_group"`
	Level    level  `yaml:"requirement_level"`
}

// level is the requirement level of an attribute, for some levels with a condition.
type level struct {
	Name string
	When string
}

type group struct {
	ID         string `yaml:"id"`
	Visibility string `yaml:"visibility"`
	Attributes []ref  `yaml:"attributes"`
}

type entity struct {
	Type        string `yaml:"type"`
	common      `yaml:",inline"`
	Identity    []ref `yaml:"identity"`
	Description []ref `yaml:"description"`
}

type metric struct {
	Name       string `yaml:"name"`
	Instrument string `yaml:"instrument"`
	Unit       string `yaml:"unit"`
	common     `yaml:",inline"`
	Attributes []ref    `yaml:"attributes"`
	Entities   []string `yaml:"entity_associations"`
}

type span struct {
	Type string `yaml:"type"`
	Kind string `yaml:"kind"`
	Name struct {
		Note string `yaml:"note"`
	} `yaml:"name"`
	common     `yaml:",inline"`
	Attributes []ref    `yaml:"attributes"`
	Entities   []string `yaml:"entity_associations"`
}

type event struct {
	Name       string `yaml:"name"`
	common     `yaml:",inline"`
	Attributes []ref    `yaml:"attributes"`
	Entities   []string `yaml:"entity_associations"`
}

// UnmarshalYAML accepts "string" and {members: [...]}.
func (t *valueType) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		t.Name = node.Value
		return nil
	}
	var enum struct {
		Members []member `yaml:"members"`
	}
	if err := strict(node, &enum); err != nil {
		return err
	}
	t.Name, t.Members = "enum", enum.Members
	return nil
}

// UnmarshalYAML accepts "required" and {conditionally_required: when}.
func (l *level) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		l.Name = node.Value
		return nil
	}
	var conditional struct {
		ConditionallyRequired string `yaml:"conditionally_required"`
	}
	if err := strict(node, &conditional); err != nil {
		return err
	}
	l.Name, l.When = "conditionally_required", conditional.ConditionallyRequired
	return nil
}
