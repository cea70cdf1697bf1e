package main

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// rule is a recording rule, or an alert. All texts may have placeholders.
type rule struct {
	Record string            `yaml:"record,omitempty"`
	Alert  string            `yaml:"alert,omitempty"`
	Expr   string            `yaml:"expr"`
	For    string            `yaml:"for,omitempty"`
	Keep   string            `yaml:"keep_firing_for,omitempty"` // Prometheus 2.42 and later
	Labels map[string]string `yaml:"labels,omitempty"`
	Notes  *notes            `yaml:"annotations,omitempty"`

	says  string   // of a recording rule: what its value is
	event string   // of an alert: the event for the same condition; "" for none
	needs []string // left out until all of these are registered (registry.has)
}

type notes struct {
	Summary     string `yaml:"summary"`
	Description string `yaml:"description"`
	Runbook     string `yaml:"runbook_url"`
}

type group struct {
	Name     string `yaml:"name"`
	Interval string `yaml:"interval"`
	Rules    []rule `yaml:"rules"`
}

const (
	severityInfo     = "info"
	severityWarning  = "warning"
	severityCritical = "critical"
)

// runbook is the section about what begins and ends the events, and what to do.
const (
	runbook    = "docs/events.md#the-events"
	repository = "https://github.com/stallspan/stallspan/blob/main/"
)

// alert adds the fields that all alerts have.
func alert(name, severity string, r rule, summary, description string) rule {
	r.Alert = name
	r.Expr = strings.TrimSpace(r.Expr)
	r.Labels = map[string]string{"severity": severity}
	where := "docs/prometheus/README.md"
	if r.event != "" {
		r.Labels["event"] = r.event
		where = runbook
		description += " Runbook: " + runbook + ", " + r.event + "."
	} else {
		description += " Runbook: " + where + "."
	}
	r.Notes = &notes{summary, description, repository + where}
	return r
}

func record(name, says, expr string) rule {
	return rule{Record: name, says: says, Expr: strings.TrimSpace(expr)}
}

// groups returns all rules whose metrics are registered, with Prometheus' names.
func (r *registry) groups() ([]group, error) {
	var all []group
	for _, g := range []group{
		{"stallspan", "15s", recordings()},
		{"stallspan-best", "1m", bests()},
		{"stallspan-gpu", "15s", gpuAlerts()},
		{"stallspan-disk", "15s", diskAlerts()},
		{"stallspan-windows", "15s", windowAlerts()},
		{"stallspan-agent", "30s", agentAlerts()},
	} {
		kept := g.Rules[:0:0]
		for _, one := range g.Rules {
			if !r.has(one.needs) {
				continue
			}
			if err := r.expandRule(&one); err != nil {
				return nil, fmt.Errorf("%s%s: %w", one.Record, one.Alert, err)
			}
			kept = append(kept, one)
		}
		g.Rules = kept
		all = append(all, g)
	}
	return all, nil
}

func (r *registry) expandRule(one *rule) error {
	texts := []*string{&one.Expr, &one.says}
	if one.Notes != nil {
		texts = append(texts, &one.Notes.Summary, &one.Notes.Description)
	}
	for _, text := range texts {
		var err error
		if *text, err = r.expand(*text); err != nil {
			return err
		}
	}
	return nil
}

const rulesHead = `# Generated from semconv/registry by "go generate ./semconv"; do not edit.
#
# Recording and alert rules for Prometheus 2.42 or later: docs/prometheus/README.md. Their meaning and their metrics:
# docs/prometheus/reference.md.

`

func writeRules(r *registry) ([]byte, error) {
	groups, err := r.groups()
	if err != nil {
		return nil, err
	}
	out := bytes.NewBufferString(rulesHead)
	e := yaml.NewEncoder(out)
	e.SetIndent(2)
	err = e.Encode(map[string][]group{"groups": groups})
	return out.Bytes(), err
}
