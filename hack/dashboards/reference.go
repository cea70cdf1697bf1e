package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const referenceHead = `<!-- Generated from semconv/registry by "go generate ./hack/dashboards"; do not edit. -->

# Rules and names

What [rules.yaml](rules.yaml) records and tells, and under which name each metric arrives in Prometheus. How to use it:
[README.md](README.md).

## Recorded

All have the label host_name; of GPUs also hw_id, and hw_sensor_location where it is a temperature; of disks
system_device_name, and disk_io_direction where reads and writes are apart.

| Series | One more | Value |
|---|---|---|
`

const alertsHead = `
## Alerts

The events are those of [events.md](../events.md#the-events). Where none stands, the agent tells no event of it.

| Alert | Severity | Holds for | Event | Meaning |
|---|---|---|---|---|
`

const namesHead = `
## Names

As the Collector's prometheus exporter and Prometheus' own OTLP endpoint translate them by default. A histogram has the three
series _bucket, _count and _sum. To the labels come those of the resource.

| Metric | Series | Labels |
|---|---|---|
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
			fmt.Fprintf(alerts, "| `%s` | %s | %s | %s | %s |\n", one.Alert, one.Labels["severity"], holds, code(one.event), plain(meaning))
		}
	}
	out.Write(alerts.Bytes())
	out.WriteString(namesHead)
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
		fmt.Fprintf(out, "| `%s` | `%s` | %s |\n", name, s, strings.Join(labels, ", "))
	}
	return out.Bytes(), nil
}

// labelsOf gives the labels that a recording rule adds to those of its machine.
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

// plain leaves Prometheus' templates out of a text.
func plain(text string) string {
	return strings.NewReplacer("{{ $labels.", "", " }}", "").Replace(text)
}
