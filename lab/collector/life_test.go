package collector

import (
	"strings"
	"syscall"
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture"
)

// At SIGHUP a Collector reads its config again: all components stop and start in one process.
func TestReload(t *testing.T) {
	c := prepare(t, "--config", "../../examples/collector/file.yaml").start()
	open, err := api.NewClient(c.socket()).Begin(t.Context(), api.Announcement{Kind: window.Custom, Name: "before"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	c.until("it is ready again", func() bool { return strings.Count(c.log.String(), "Everything is ready") == 2 })
	if _, err := api.NewClient(c.socket()).End(t.Context(), open.ID); err == nil {
		t.Error("end of a window from before the restart: got no error, want one")
	}
	if _, err := api.NewClient(c.socket()).Begin(t.Context(),
		api.Announcement{Kind: window.Custom, Name: "after"}); err != nil {
		t.Error(err)
	}
	began(tracer(t, c.otlp, here(t)...), "a span", attribute.String("stallspan.window.kind", "custom")).End()
	if s := c.find("a span"); s.Attributes["stallspan.verdict"] == nil {
		t.Errorf("attributes: got %v, want a verdict", s.Attributes)
	}
	c.stop()
}

// Each of the two components works without the other.
func TestEitherAlone(t *testing.T) {
	for name, config := range map[string]string{
		"the processor": "service: {pipelines: {traces: {receivers: [otlp]}, metrics: {receivers: [otlp]}, logs: {receivers: [otlp]}}}",
		"the receiver":  "service: {pipelines: {traces: {receivers: [otlp, stallspan], processors: []}}}",
	} {
		t.Run(name, func(t *testing.T) {
			c := prepare(t, "--config", "../../examples/collector/file.yaml", "--config", "yaml:"+config).start()
			began(tracer(t, c.otlp, here(t)...), "a span", attribute.String("stallspan.window.kind", "custom")).End()
			_, annotated := c.find("a span").Attributes["stallspan.verdict"]
			if annotated != (name == "the processor") {
				t.Errorf("annotated: got %v, want %v", annotated, name == "the processor")
			}
			begun, err := api.NewClient(c.socket()).Begin(t.Context(), api.Announcement{Kind: window.Epoch, PID: 1})
			if (err == nil) != (name == "the receiver") {
				t.Errorf("announced window: got %v, %v, want success only with the receiver", begun, err)
			}
			c.stop()
		})
	}
}

// Spans wait on disk for a backend that is down, also across a restart.
func TestSpansWait(t *testing.T) {
	backend := prepare(t, "--config", "../../examples/collector/file.yaml")
	state := t.TempDir()
	node := func() *collector {
		c := prepare(t, "--config", "../../examples/collector/node.yaml")
		c.set("TEMPO", backend.otlp)
		c.set("METRICS", "http://"+fixture.FreePort(t)) // not there
		c.set("LOKI", "http://"+fixture.FreePort(t))    // not there
		c.set("HEALTH", fixture.FreePort(t))
		c.set("STATE", state)
		return c.start()
	}
	first := node()
	began(tracer(t, first.otlp, here(t)...), "waiting span", attribute.String("stallspan.window.kind", "custom")).End()
	first.stop()

	backend.start()
	second := node()
	if s := backend.find("waiting span"); s.Attributes["stallspan.verdict"] == nil || s.resource["os.type"] != "linux" {
		t.Errorf("got attributes %v and resource %v, want a verdict and os.type=linux", s.Attributes, s.resource)
	}
	second.stop()
	backend.stop()
}
