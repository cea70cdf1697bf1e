package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const referenceHead = `<!-- Generated from semconv/registry by "go generate ./semconv"; do not edit. -->

# Rules and names

The recording rules and alerts of [rules.yaml](rules.yaml), and the name of each metric in Prometheus. How to use
them: [README.md](README.md).

## Recorded

All have the label host_name. Series of GPUs also have hw_id, and temperatures hw_sensor_location. Series of disks have
system_device_name, and disk_io_direction if reads and writes are separate.

| Series | Further label | Value |
|---|---|---|
`

const alertsHead = `
## Alerts

The events are those of [events.md](../events.md#the-events). An alert without one has no event.

| Alert | Severity | Holds for | Event | Meaning |
|---|---|---|---|---|
`

const namesHead = `
## Names

The Collector's prometheus exporter and Prometheus' OTLP endpoint translate names like this by default. A histogram has
the three series _bucket, _count and _sum. The labels of the resource come in addition.
`

func writeReference(r *registry) ([]byte, error) {
	groups, err := r.groups()
	if err != nil {
		return nil, err
	}
	out := bytes.NewBufferString(referenceHead)
	alerts := bytes.NewBufferString(alertsHead)
	for _, g := range groups {
		for _, one := range g.Rules {
			if one.Record != "" {
				fmt.Fprintf(out, "| `%s` | %s | %s |\n", one.Record, strings.Join(labelsOf(one), ", "), one.says)
				continue
			}
			holds := one.For
			if holds == "" {
				holds = "at once"
			}
			meaning, _, _ := strings.Cut(one.Notes.Description, " Runbook: ")
			fmt.Fprintf(alerts, "| `%s` | %s | %s | %s | %s |\n", one.Alert, one.Labels["severity"], holds, code(one.event),
				plain(meaning))
		}
	}
	out.Write(alerts.Bytes())
	out.WriteString(namesHead)
	byLabels := map[string]string{} // the series that have the same labels
	for _, name := range slices.Sorted(maps.Keys(r.metrics)) {
		m := r.metrics[name]
		s, err := series(m)
		if err != nil {
			return nil, err
		}
		var labels []string
		for _, key := range m.keys {
			l, err := label(key)
			if err != nil {
				return nil, err
			}
			labels = append(labels, code(l))
		}
		all := strings.Join(labels, ", ")
		byLabels[all] += fmt.Sprintf("- `%s`: `%s`\n", s, name)
	}
	for _, labels := range slices.Sorted(maps.Keys(byLabels)) {
		fmt.Fprintf(out, "\nLabels: %s\n\n%s", cmp.Or(labels, "none"), byLabels[labels])
	}
	return out.Bytes(), nil
}

// labelsOf returns the labels that a recording rule adds.
func labelsOf(one rule) (all []string) {
	for _, k := range slices.Sorted(maps.Keys(one.Labels)) {
		all = append(all, code(k+`="`+one.Labels[k]+`"`))
	}
	return all
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// plain removes Prometheus' templates from a text.
func plain(text string) string {
	return strings.NewReplacer("{{ $labels.", "", " }}", "").Replace(text)
}
