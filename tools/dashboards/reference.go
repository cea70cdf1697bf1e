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

`

const alertsHead = `
## Alerts

With the severity, how long the condition must hold, and the [event](../events.md#the-events) of the same condition, if
there is one. An alert's description says what to do.

`

const namesHead = `
## Names

The Collector's prometheus exporter and Prometheus' OTLP endpoint translate [names](../metrics.md) like this by default:

- Dots become underscores, in attributes too, which become labels. Those of the resource come in addition.
- The unit is appended: s seconds, By bytes, By/s bytes_per_second, Cel celsius, Hz hertz, J joules, W watts; for 1,
  ratio on gauges. Words in braces are not.
- Then _total on counters. A histogram has the three series _bucket, _count and _sum.

So disk.io in By is disk_io_bytes_total. A suffix that the name has is not repeated:

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
				fmt.Fprintf(out, "- %s: %s\n", code(one.Record+labelsOf(one)), one.says)
				continue
			}
			fmt.Fprintf(alerts, "- `%s`: %s, %s", one.Alert, one.Labels["severity"], cmp.Or(one.For, "at once"))
			if one.event != "" {
				fmt.Fprintf(alerts, ", `%s`", one.event)
			}
			alerts.WriteString("\n")
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
		if s != byRule(m) {
			fmt.Fprintf(out, "- `%s`: `%s`\n", name, s)
		}
	}
	return out.Bytes(), nil
}

// unitWords are the units of the page's rule.
var unitWords = map[string]string{
	"s": "_seconds", "By": "_bytes", "By/s": "_bytes_per_second", "Cel": "_celsius", "Hz": "_hertz", "J": "_joules",
	"W": "_watts",
}

// byRule returns the series of a metric by the rule that the page gives.
func byRule(m *metric) string {
	name := strings.ReplaceAll(m.Name, ".", "_") + unitWords[m.Unit]
	if m.Unit == "1" && m.Instrument == "gauge" {
		name += "_ratio"
	}
	if m.Instrument == "counter" {
		name += "_total"
	}
	return name
}

// writeNames returns a line for each metric with the series and its labels, for tests of what is exported.
func writeNames(r *registry) ([]byte, error) {
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(r.metrics)) {
		s, err := series(r.metrics[name])
		if err != nil {
			return nil, err
		}
		out.WriteString(s)
		for _, key := range r.metrics[name].keys {
			l, err := label(key)
			if err != nil {
				return nil, err
			}
			out.WriteString(" " + l)
		}
		out.WriteString("\n")
	}
	return out.Bytes(), nil
}

// labelsOf returns the labels that a recording rule adds, as a selector has them.
func labelsOf(one rule) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(one.Labels)) {
		all = append(all, fmt.Sprintf("%s=%q", k, one.Labels[k]))
	}
	if all == nil {
		return ""
	}
	return "{" + strings.Join(all, ",") + "}"
}

func code(text string) string { return "`" + text + "`" }
