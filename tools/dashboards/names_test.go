package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/semconv"
	"github.com/stallspan/stallspan/test/signals"
)

// The registry that is read here is the one that the program emits.
func TestRegistryIsTheProgramsOwn(t *testing.T) {
	r := registered(t)
	if len(r.metrics) != len(semconv.Metrics) {
		t.Errorf("%d metrics, and the program has %d", len(r.metrics), len(semconv.Metrics))
	}
	for _, m := range semconv.Metrics {
		got, attributes := r.metrics[m.Name], signals.OfMetrics[m.Name]
		if got == nil || got.Unit != m.Unit || got.Instrument != m.Kind.String() || len(got.keys) != len(attributes) {
			t.Errorf("metric %s: got %+v, want %+v", m.Name, got, m)
			continue
		}
		for i, a := range attributes {
			if got.keys[i] != string(a.Key) {
				t.Errorf("%s has %s, and not %s", m.Name, got.keys[i], a.Key)
			}
		}
	}
	spans := map[string]bool{}
	for _, s := range signals.Spans {
		for _, a := range s.Attributes {
			spans[string(a.Key)] = true
			if !r.spans[string(a.Key)] {
				t.Errorf("no span has %s", a.Key)
			}
		}
	}
	if len(r.spans) != len(spans) {
		t.Errorf("spans have %d attributes, and the program's %d", len(r.spans), len(spans))
	}
}

// One of each unit and kind. The library that makes them is the one of the Collector's exporter and of Prometheus; the
// names here were read off a real one.
func TestSeries(t *testing.T) {
	r := registered(t)
	for name, want := range map[string]string{
		"system.disk.io":                      "system_disk_io_bytes_total",
		"system.disk.operations":              "system_disk_operations_total",
		"system.disk.operation_time":          "system_disk_operation_time_seconds_total",
		"system.disk.pending_operations":      "system_disk_pending_operations",
		"stallspan.disk.await":                "stallspan_disk_await_seconds",
		"stallspan.disk.queue.depth":          "stallspan_disk_queue_depth",
		"stallspan.disk.throughput.ceiling":   "stallspan_disk_throughput_ceiling_bytes_per_second",
		"stallspan.gpu.clock.frequency":       "stallspan_gpu_clock_frequency_hertz",
		"stallspan.gpu.pcie.link.width":       "stallspan_gpu_pcie_link_width",
		"stallspan.gpu.busy.time":             "stallspan_gpu_busy_time_seconds_total",
		"hw.energy":                           "hw_energy_joules_total",
		"hw.power":                            "hw_power_watts",
		"hw.temperature":                      "hw_temperature_celsius",
		"hw.errors":                           "hw_errors_total",
		"hw.status":                           "hw_status",
		"hw.gpu.memory.usage":                 "hw_gpu_memory_usage_bytes",
		"hw.gpu.utilization":                  "hw_gpu_utilization_ratio",
		"stallspan.training.epoch.duration":   "stallspan_training_epoch_duration_seconds",
		"system.linux.pressure.io.stall.time": "system_linux_pressure_io_stall_time_seconds_total",
		"process.disk.io":                     "process_disk_io_bytes_total",
		"stallspan.nvml.value.dropped":        "stallspan_nvml_value_dropped_total",
	} {
		if got, err := series(r.metrics[name]); err != nil || got != want {
			t.Errorf("%s: %s, not %s: %v", name, got, want, err)
		}
	}
}

// Other pages that name series use the same names.
func TestSeriesInTheDocumentation(t *testing.T) {
	r := registered(t)
	known := r.known(t)
	word := regexp.MustCompile(`\b(?:stallspan|hw|system_(?:disk|cpu))_[a-z0-9_]*_(?:total|seconds|bytes|ratio|celsius|hertz)\b`)
	for _, page := range []string{"backends.md", "collector.md", "prometheus/README.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range word.FindAllString(string(text), -1) {
			if known[name] == nil && !strings.HasPrefix(name, "otelcol_") {
				t.Errorf("docs/%s has %s, which no metric of the registry becomes", page, name)
			}
		}
	}
}

// known returns each series that Prometheus may have, with its possible labels.
func (r *registry) known(t *testing.T) map[string]map[string]bool {
	t.Helper()
	all := map[string]map[string]bool{}
	for _, m := range r.metrics {
		name, err := series(m)
		if err != nil {
			t.Fatal(err)
		}
		labels := map[string]bool{"le": m.Instrument == "histogram"}
		for _, key := range m.keys {
			labels[mustLabel(t, key)] = true
		}
		for key := range r.resource {
			labels[mustLabel(t, key)] = true
		}
		if m.Instrument != "histogram" {
			all[name] = labels
			continue
		}
		for _, part := range histogramParts {
			all[name+part] = labels
		}
	}
	return all
}

func mustLabel(t *testing.T, key string) string {
	t.Helper()
	l, err := label(key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
