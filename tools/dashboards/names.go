package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/otlptranslator"
)

// The default translation of names (UnderscoreEscapingWithSuffixes) of Prometheus' OTLP endpoint and of the Collector's
// prometheus exporter, which calls the same library.
var (
	metricNamer = otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	labelNamer  = otlptranslator.LabelNamer{}
)

var types = map[string]otlptranslator.MetricType{
	"counter":       otlptranslator.MetricTypeMonotonicCounter,
	"updowncounter": otlptranslator.MetricTypeNonMonotonicCounter,
	"gauge":         otlptranslator.MetricTypeGauge,
	"histogram":     otlptranslator.MetricTypeHistogram,
}

// series returns Prometheus' name of a metric. A histogram's series add _bucket, _count or _sum.
func series(m *metric) (string, error) {
	return metricNamer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: types[m.Instrument]})
}

// label returns the label of an attribute.
func label(key string) (string, error) { return labelNamer.Build(key) }

// placeholder is a name of the registry in a text: <hw.temperature> for a series or a label, <hw.state=failed> and
// <hw.state=~failed|degraded> for a matcher of a label, <span.stallspan.slow> and <resource.host.name> for TraceQL. A
// comparison has a blank behind its <.
var placeholder = regexp.MustCompile(`<([a-z][a-z0-9_.]*)(?:(=~|!~|!=|=)([^<>]*))?>`)

// histogramParts are the suffixes of a histogram's series.
var histogramParts = []string{"_bucket", "_count", "_sum"}

// expand replaces placeholders by the names of Prometheus and of TraceQL.
func (r *registry) expand(text string) (string, error) {
	var failed error
	text = placeholder.ReplaceAllStringFunc(text, func(found string) string {
		part := placeholder.FindStringSubmatch(found)
		name, err := r.resolve(part[1], part[2], part[3])
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w", found, err)
		}
		return name
	})
	return text, failed
}

func (r *registry) resolve(name, operator, value string) (string, error) {
	if operator != "" {
		return r.matcher(name, operator, value)
	}
	if key, found := strings.CutPrefix(name, "span."); found {
		if !r.spans[key] {
			return "", fmt.Errorf("no span in the registry has the attribute %s", key)
		}
		return name, nil
	}
	if key, found := strings.CutPrefix(name, "resource."); found {
		if !r.resource[key] {
			return "", fmt.Errorf("no resource in the registry has the attribute %s", key)
		}
		return name, nil
	}
	if m := r.metrics[name]; m != nil {
		if m.Instrument == "histogram" {
			return "", fmt.Errorf("a histogram: say which of its series, with one of %v", histogramParts)
		}
		return series(m)
	}
	for _, part := range histogramParts {
		if m := r.metrics[strings.TrimSuffix(name, part)]; m != nil && m.Instrument == "histogram" {
			base, err := series(m)
			return base + part, err
		}
	}
	if r.attributes[name] != nil { // after the metrics, because spans have attributes of the same names
		return label(name)
	}
	return "", fmt.Errorf("neither a metric nor an attribute of the registry")
}

// matcher refuses a value that is not registered for an attribute with listed values. XIDs are recognised by their
// codes, which no list has.
func (r *registry) matcher(key, operator, value string) (string, error) {
	if err := r.knows(key, value); err != nil {
		return "", err
	}
	name, err := label(key)
	return fmt.Sprintf("%s%s%q", name, operator, value), err
}

func (r *registry) knows(key, value string) error {
	a := r.attributes[key]
	if a == nil {
		return fmt.Errorf("no attribute of the registry is called %s", key)
	}
	if len(a.values) == 0 || strings.HasPrefix(value, "$") { // a variable of Grafana's
		return nil
	}
	for one := range strings.SplitSeq(value, "|") {
		isXID := key == "error.type" && strings.HasPrefix(one, "xid_")
		if !isXID && !slices.Contains(a.values, one) {
			return fmt.Errorf("the registry has no value %q of %s", one, key)
		}
	}
	return nil
}

// has reports whether everything in a list is registered: metrics, attributes, and values as hw.type=physical_disk.
func (r *registry) has(needs []string) bool {
	for _, need := range needs {
		key, value, isValue := strings.Cut(need, "=")
		switch {
		case isValue && r.knows(key, value) != nil:
			return false
		case !isValue && r.metrics[need] == nil && r.attributes[need] == nil:
			return false
		}
	}
	return true
}
