//go:build linux && (amd64 || arm64)

package receiver

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/stallspan/stallspan/test/fixture"
)

// laboratory is a config for the machine of a fixture, with a socket of the test's own.
func laboratory(t testing.TB) *Config {
	c, _ := createDefaultConfig().(*Config)
	c.CollectionInterval, c.InitialDelay = 20*time.Millisecond, 0
	c.Sampling.Interval = 10 * time.Millisecond
	c.Sampling.RootPath = fixture.Root(t, "check_server")
	c.Socket = filepath.Join(t.TempDir(), "s.sock")
	return c
}

// pipelines are a receiver in pipelines of the three kinds.
type pipelines struct {
	consumertest.MetricsSink
	consumertest.TracesSink
	consumertest.LogsSink
	parts []component.Component
}

func settings() receiver.Settings {
	set := receivertest.NewNopSettings(component.MustNewType("stallspan"))
	set.BuildInfo.Version = "1.2.3"
	return set
}

// in makes a receiver for pipelines of the named kinds.
func in(t testing.TB, f receiver.Factory, set receiver.Settings, c *Config, kinds ...string) *pipelines {
	t.Helper()
	p := &pipelines{}
	for _, kind := range kinds {
		var part component.Component
		var err error
		switch kind {
		case "metrics":
			part, err = f.CreateMetrics(t.Context(), set, c, &p.MetricsSink)
		case "traces":
			part, err = f.CreateTraces(t.Context(), set, c, &p.TracesSink)
		case "logs":
			part, err = f.CreateLogs(t.Context(), set, c, &p.LogsSink)
		}
		if err != nil {
			t.Fatal(err)
		}
		p.parts = append(p.parts, part)
	}
	return p
}

// start starts all parts; they are shut down when the test ends, unless they are already.
func (p *pipelines) start(t testing.TB) {
	t.Helper()
	for _, part := range p.parts {
		if err := part.Start(t.Context(), componenttest.NewNopHost()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { p.stop(t) })
}

func (p *pipelines) stop(t testing.TB) {
	t.Helper()
	for _, part := range p.parts {
		if err := part.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	p.parts = nil
}

// eventually waits for what another goroutine does.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}
