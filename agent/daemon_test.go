package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture"
)

// startAgent starts an agent on a socket of its own, and returns when it answers.
func startAgent(t *testing.T, socket string, args ...string) (*invocation, *liveOutput) {
	t.Helper()
	v := stallspan(t, append([]string{"agent"}, args...)...)
	var said liveOutput
	v.Stderr = &said
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket)
	v.start()
	said.until(t, 1, "windows are announced at "+socket)
	return v, &said
}

func stop(t *testing.T, v *invocation) {
	t.Helper()
	if err := v.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := v.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func socketIn(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sa") // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s.sock")
}

// Announced windows become spans, including those that are open when the agent stops.
func TestAgent(t *testing.T) {
	t.Parallel()
	b := serveBackend(t)
	socket := socketIn(t)
	v := stallspan(t, "agent")
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+b.address)
	var said liveOutput
	v.Stderr = &said
	v.start()
	said.until(t, 1, "windows are announced at "+socket)
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("the socket: %v, %v", info, err)
	}

	client := api.NewClient(socket)
	// Another process does the work: it uses CPU, and its window shows that.
	worker := exec.Command("sh", "-c", "while :; do :; done")
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = worker.Process.Kill(), worker.Wait() }()
	epoch := 4
	begun, err := client.Begin(t.Context(), api.Announcement{Kind: window.Epoch, Epoch: &epoch, PID: worker.Process.Pid,
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Begin(t.Context(), api.Announcement{Kind: window.ModelLoad, Model: "never",
		Path: "/no/longer/there"}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Begin(t.Context(), api.Announcement{Kind: window.Custom, Name: "without a process",
		PID: 1<<22 - 1}); err != nil {
		t.Errorf("a process that is gone: %v", err)
	}
	time.Sleep(500 * time.Millisecond)
	text, err := client.End(t.Context(), begun.ID)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Verdict string
		Process struct {
			CPU float64 `json:"on_cpu_s"`
		}
		Stall struct {
			Ready float64 `json:"ready_s"`
		}
		Duration float64 `json:"duration_s"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	if worked := report.Process.CPU + report.Stall.Ready; worked < 0.1*report.Duration || worked > 1.01*report.Duration {
		t.Errorf("the worker was on the CPU, or ready for one, for %v s of %v: %s", worked, report.Duration, text)
	}
	stop(t, v)
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
	spans := map[string]*tracepb.Span{}
	for _, r := range b.spans {
		for _, s := range r.ScopeSpans[0].Spans {
			if !strings.HasPrefix(s.Name, "storage stall") { // this process's other tests may read while the load runs
				spans[s.Name] = s
			}
		}
	}
	if len(spans) != 3 || spans["epoch"] == nil || spans["load never"] == nil || spans["custom without a process"] == nil {
		t.Fatalf("spans: %v", spans)
	}
	if fmt.Sprintf("%x", spans["epoch"].TraceId) != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("the epoch is not in its program's trace: %v", spans["epoch"])
	}
	found := map[string]bool{}
	for _, r := range b.metrics {
		for _, scope := range r.ScopeMetrics {
			for _, m := range scope.Metrics {
				found[m.Name] = true
			}
		}
	}
	for _, name := range []string{"system.cpu.time", "stallspan.panics", "stallspan.reading.late",
		"stallspan.export.dropped"} {
		if !found[name] {
			t.Errorf("got the metrics %v, want %s", found, name)
		}
	}
}

// A socket has one agent. An agent that was killed leaves a socket behind, which the next one reuses.
func TestSecondAgent(t *testing.T) {
	t.Parallel()
	socket := socketIn(t)
	first, said := startAgent(t, socket)
	said.until(t, 1, "nothing is sent: set OTEL_EXPORTER_OTLP_ENDPOINT")
	second := stallspan(t, "agent")
	second.Env = append(second.Env, "STALLSPAN_SOCKET="+socket)
	if code := second.run(); code != cli.ExitFailed || !strings.Contains(second.errorLine(),
		"another stallspan serves "+socket) {
		t.Errorf("exit code %d: %s", code, second.err.String())
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	third, _ := startAgent(t, socket)
	stop(t, third)
}

func TestAgentOverTCP(t *testing.T) {
	t.Parallel()
	socket := socketIn(t)
	config := filepath.Join(t.TempDir(), "c.yaml")
	address := fixture.FreePort(t)
	_, port, _ := net.SplitHostPort(address)
	if err := os.WriteFile(config, []byte("socket: "+socket+"\nendpoint: "+port+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := stallspan(t, "agent", "--config", config)
	var said liveOutput
	v.Stderr = &said
	v.start()
	said.until(t, 1, "windows are announced at "+address)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: slowest}
	for host, want := range map[string]int{"": http.StatusOK, "localhost:" + port: http.StatusOK, "[::1]": http.StatusOK,
		"example.com": http.StatusForbidden} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/v1/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("asked as %q: %s", host, answer.Status)
		}
	}
	stop(t, v)
}

// Hundreds of windows are open at once. lab/footprint has a thousand.
func TestManyWindows(t *testing.T) {
	t.Parallel()
	socket := socketIn(t)
	v, _ := startAgent(t, socket)
	client := api.NewClient(socket)
	ids := make(chan string, 400)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range cap(ids) / 4 {
				begun, err := client.Begin(context.WithoutCancel(t.Context()), api.Announcement{Kind: window.Custom, Name: "many"})
				if err != nil {
					t.Error(err)
					return
				}
				ids <- begun.ID
			}
		})
	}
	all.Wait()
	close(ids)
	for range 4 {
		all.Go(func() {
			for id := range ids {
				if _, err := client.End(context.WithoutCancel(t.Context()), id); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	stop(t, v)
}

func TestAgentRefuses(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "c.yaml")
	for text, says := range map[string]string{
		"sampling: {intervall: 1s}":  "did you mean interval?",
		"sampling: {interval: 1h}":   "choose one from",
		"endpoint: everywhere":       "is not a port",
		"socket: /proc/nowhere/sock": "cannot create the socket's folder",
	} {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		v := stallspan(t, "agent", "--config", config)
		if !strings.Contains(text, "socket") {
			v.Env = append(v.Env, "STALLSPAN_SOCKET="+socketIn(t))
		}
		if code := v.run(); code != cli.ExitUsage && code != cli.ExitFailed || !strings.Contains(v.errorLine(), says) {
			t.Errorf("%s: got exit code %d, %s; want an error with %q", text, code, v.err.String(), says)
		}
	}
}
