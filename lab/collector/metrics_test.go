package collector

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/emulate"
	"github.com/stallspan/stallspan/test/fixture"
)

// get returns a page of a server on the loopback, "" if it does not answer yet.
func get(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4*mib))
	if err != nil || answer.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

// victoria starts a VictoriaMetrics for this test.
func victoria(t *testing.T) (address string) {
	t.Helper()
	address = fixture.FreePort(t)
	log := &logBuffer{}
	database := exec.CommandContext(t.Context(), built(t, "backends/victoria-metrics"), "-httpListenAddr="+address,
		"-storageDataPath="+t.TempDir(), "-search.latencyOffset=0s", "-opentelemetry.usePrometheusNaming")
	database.Stdout, database.Stderr = log, log
	if err := database.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = database.Process.Kill()
		_ = database.Wait() // it was killed
		if t.Failed() {
			t.Logf("log of VictoriaMetrics:\n%.4000s", log)
		}
	})
	return address
}

// query returns the value of a PromQL query with one result. It waits for the result.
func (c *collector) query(address, promQL string) (value float64) {
	c.t.Helper()
	c.until("the database answers "+promQL, func() bool {
		text := get(c.t, "http://"+address+"/api/v1/query?query="+url.QueryEscape(promQL))
		var answer struct {
			Data struct{ Result []struct{ Value [2]any } }
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil || len(answer.Data.Result) == 0 {
			return false
		}
		if len(answer.Data.Result) > 1 {
			c.t.Fatalf("results of %s: got %d, want 1: %s", promQL, len(answer.Data.Result), text)
		}
		var err error
		value, err = strconv.ParseFloat(fmt.Sprint(answer.Data.Result[0].Value[1]), 64)
		return err == nil
	})
	return value
}

// The queries of docs/collector.md work in a real database.
func TestMetricsInADatabase(t *testing.T) {
	address := victoria(t)
	c := prepare(t, "--config", "../../examples/collector/node.yaml")
	c.set("METRICS", "http://"+address+"/opentelemetry/v1/metrics")
	c.set("TEMPO", fixture.FreePort(t)) // not there: spans wait
	c.set("LOKI", "http://"+fixture.FreePort(t))
	c.set("HEALTH", fixture.FreePort(t))
	c.set("STATE", c.output)
	c.start()

	const read = `sum(system_disk_io_bytes_total{disk_io_direction="read"})`
	before := c.query(address, read)
	files := coldFiles(t, 128*mib)
	if err := emulate.Load(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	c.until("the database has the read bytes", func() bool {
		return c.query(address, read)-before >= 0.99*float64(files.ModelBytes())
	})

	share := c.query(address, `max by (host_name) (rate(system_linux_pressure_io_stall_time_seconds_total{system_linux_pressure_stall_type="some"}[1m]))`)
	if share < 0 || share > 1.1 {
		t.Errorf("share of time with tasks waiting for I/O: got %v, want 0 to 1.1", share)
	}
	if busy := c.query(address, `max by (host_name) (rate(system_disk_io_time_seconds_total[1m]))`); busy < 0 || busy > 1.1 {
		t.Errorf("share of time with a busy disk: got %v, want 0 to 1.1", busy)
	}
	if n := c.query(address, `count(count by (host_name, host_id) ({__name__=~"(stallspan|system_disk)_.*"}))`); n != 1 {
		t.Errorf("machines in the database: got %v, want 1", n)
	}
	c.stop()
}

// laptop.yaml serves the metrics to a browser or a Prometheus.
func TestMetricsOnALaptop(t *testing.T) {
	c := prepare(t, "--config", "../../examples/collector/laptop.yaml")
	page := fixture.FreePort(t)
	c.set("PROMETHEUS", page)
	c.set("JAEGER", fixture.FreePort(t)) // not there
	c.start()
	c.until("the metrics are there", func() bool {
		text := get(t, "http://"+page+"/metrics")
		return strings.Contains(text, "\nsystem_disk_io_bytes_total{") &&
			strings.Contains(text, "\nsystem_linux_pressure_io_stall_time_seconds_total{")
	})
	c.stop()
}

// The Collector's own telemetry counts the annotated spans, and those of other hosts.
func TestOwnMetrics(t *testing.T) {
	c := prepare(t, "--config", "../../examples/collector/file.yaml")
	own := fixture.FreePort(t)
	c.set("OWN_METRICS_PORT", port(own))
	c.start()
	kind := attribute.String("stallspan.window.kind", "epoch")
	began(tracer(t, c.otlp, here(t)...), "ours", kind).End()
	theirs := tracer(t, c.otlp, attribute.String("host.name", "another-machine"))
	began(theirs, "not ours", kind).End()
	began(theirs, "not ours either", kind).End()
	for name, want := range map[string]string{
		"receiver_stallspan_windows_open":     "0",
		"processor_stallspan_spans_annotated": "1",
		"processor_stallspan_spans_foreign":   "2",
	} {
		pattern := regexp.MustCompile(`(?m)^otelcol_` + name + `(\{.*\})? ` + want + `$`)
		page := ""
		t.Cleanup(func() {
			if t.Failed() {
				t.Log(page)
			}
		})
		c.until(name+" is "+want, func() bool {
			page = get(t, "http://"+own+"/metrics")
			return pattern.MatchString(page)
		})
	}
	c.stop()
}
