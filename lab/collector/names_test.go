package collector

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/test/fixture"
)

// Every series of a real Collector, with each label, is in semconv/testdata/prometheus.txt: rules and dashboards
// have the same names.
func TestNamesInPrometheus(t *testing.T) {
	text, err := os.ReadFile("../../semconv/testdata/prometheus.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{} // the labels that a series may have
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		known[fields[0]] = fields[1:]
	}

	c := prepare(t, "--config", "../../examples/collector/laptop.yaml")
	page := fixture.FreePort(t)
	c.set("PROMETHEUS", page)
	c.set("JAEGER", fixture.FreePort(t)) // not there
	c.start()
	shown := ""
	c.until("the metrics are there", func() bool {
		shown = get(t, "http://"+page+"/metrics")
		return strings.Contains(shown, "\nstallspan_disk_utilization_ratio{") &&
			strings.Contains(shown, "\nsystem_disk_io_bytes_total{")
	})
	c.stop()

	everywhere := regexp.MustCompile(`^(host|service|otel_scope)_|^(job|instance|le)$`) // of the resource, the scope and Prometheus
	series, label := regexp.MustCompile(`(?m)^([a-z0-9_]+)\{(.*)\} `), regexp.MustCompile(`([a-z0-9_]+)="(?:[^"\\]|\\.)*"`)
	checked := 0
	for _, s := range series.FindAllStringSubmatch(shown, -1) {
		name, found := s[1], false
		var labels []string
		if name == "target_info" {
			continue
		}
		for _, end := range []string{"", "_bucket", "_count", "_sum"} {
			if list, ok := known[strings.TrimSuffix(name, end)]; ok {
				labels, found = list, true
			}
		}
		if !found {
			t.Errorf("series: got %s, want one of the registry", name)
		}
		for _, l := range label.FindAllStringSubmatch(s[2], -1) {
			if !everywhere.MatchString(l[1]) && !slices.Contains(labels, l[1]) {
				t.Errorf("label of %s: got %s, want one of the registry", name, l[1])
			}
		}
		checked++
	}
	if checked < 20 {
		t.Errorf("series: got %d, want at least 20: %.2000s", checked, shown)
	}
}
