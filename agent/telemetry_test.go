package agent

import (
	"bytes"
	"fmt"
	"math"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/stallspan/stallspan/agent/internal/cli"
)

func TestSpansOfARun(t *testing.T) {
	t.Parallel()
	b := serveBackend(t)
	v := stallspan(t, "run", "--name", "mnist", "--", "sh", "-c",
		"echo Epoch 1/2; sleep 0.1; echo Epoch 2/2; sleep 0.1; echo $TRACEPARENT; exit 3")
	v.Env = append(v.Env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+b.address, "OTEL_SERVICE_NAME=trainer",
		"TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if code := v.run(); code != 3 {
		t.Errorf("exit code %d", code)
	}
	said := strings.Replace(v.err.String(), "stallspan: the program failed: exit code 3\n", "", 1)
	if said == v.err.String() || strings.Contains(said, "stallspan:") {
		t.Errorf("got %s, want that the program failed, and no complaint", v.err.String())
	}
	spans := map[string]*tracepb.Span{}
	for _, r := range b.spans {
		resource := attributes(r.Resource.Attributes)
		for _, key := range []string{"host.id", "host.name", "service.instance.id"} {
			if resource[key] == nil || resource["service.name"] != "trainer" {
				t.Errorf("resource of the spans: %v", resource)
			}
		}
		for _, s := range r.ScopeSpans[0].Spans {
			a := attributes(s.Attributes)
			spans[fmt.Sprint(s.Name, a["stallspan.training.epoch.index"])] = s
		}
	}
	run := spans["run mnist<nil>"]
	if run == nil || len(spans) != 3 {
		t.Fatalf("spans: %v", spans)
	}
	if fmt.Sprintf("%x %x", run.TraceId, run.ParentSpanId) != "0af7651916cd43dd8448eb211c80319c b7ad6b7169203331" {
		t.Errorf("the run is not part of its caller's trace: %v", run)
	}
	if own := fmt.Sprintf("00-%x-%x-01", run.TraceId, run.SpanId); !strings.Contains(v.out.String(), own+"\n") {
		t.Errorf("the program's parent is not the run %s: %s", own, v.out.String())
	}
	if a := attributes(run.Attributes); a["process.exit.code"] != int64(3) ||
		a["stallspan.training.run.name"] != "mnist" || a["process.pid"] == nil {
		t.Errorf("the run: %v", a)
	}
	var last uint64
	for i, name := range []string{"epoch mnist1", "epoch mnist2"} {
		s := spans[name]
		if s == nil {
			t.Fatalf("no %s: %v", name, spans)
		}
		if !bytes.Equal(s.ParentSpanId, run.SpanId) || !bytes.Equal(s.TraceId, run.TraceId) {
			t.Errorf("%s is not within the run: %v", name, s)
		}
		const slack = uint64(apart)
		if s.StartTimeUnixNano+slack < run.StartTimeUnixNano || s.EndTimeUnixNano > run.EndTimeUnixNano+slack ||
			s.StartTimeUnixNano+slack < last {
			t.Errorf("%s at %d to %d, the run at %d to %d", name, s.StartTimeUnixNano, s.EndTimeUnixNano, run.StartTimeUnixNano,
				run.EndTimeUnixNano)
		}
		last = s.EndTimeUnixNano
		checkEpoch(t, s, i+1)
	}
}

func checkEpoch(t *testing.T, s *tracepb.Span, number int) {
	t.Helper()
	a := attributes(s.Attributes)
	want := map[string]any{
		"stallspan.window.kind": "epoch", "stallspan.window.source": "announced",
		"stallspan.training.run.name": "mnist", "stallspan.training.epoch.index": int64(number),
	}
	for key, value := range want {
		if a[key] != value {
			t.Errorf("epoch %d: %s is %v", number, key, a[key])
		}
	}
	for _, key := range []string{"stallspan.verdict", "stallspan.finding", "stallspan.slow",
		"stallspan.stall.storage.time"} {
		if a[key] == nil {
			t.Errorf("epoch %d: no %s: %v", number, key, a)
		}
	}
	for key := range a {
		if key == "error" {
			t.Errorf("epoch %d has an attribute %q", number, key)
		}
	}
	if took := float64(s.EndTimeUnixNano-s.StartTimeUnixNano) / 1e9; math.IsNaN(took) || took < 0.05 {
		t.Errorf("epoch %d took %v s", number, took)
	}
	if s.Kind != tracepb.Span_SPAN_KIND_INTERNAL || (s.Status != nil &&
		s.Status.Code != tracepb.Status_STATUS_CODE_UNSET) {
		t.Errorf("epoch %d: kind %v, status %v", number, s.Kind, s.Status)
	}
}

func TestMetricsOfARun(t *testing.T) {
	t.Parallel()
	b := serveBackend(t)
	v := stallspan(t, "run", "--", "sh", "-c", "echo Epoch 1/1; sleep 0.2")
	v.Env = append(v.Env, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://"+b.address)
	if code := v.run(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if len(b.metrics) == 0 || len(b.spans) > 0 {
		t.Fatalf("%d requests of metrics, %d of spans", len(b.metrics), len(b.spans))
	}
	found := map[string]bool{}
	for _, r := range b.metrics {
		resource := attributes(r.Resource.Attributes)
		for _, key := range []string{"host.id", "host.name", "service.name", "service.instance.id"} {
			if resource[key] == nil {
				t.Errorf("resource of the metrics: %v", resource)
			}
		}
		for _, scope := range r.ScopeMetrics {
			for _, m := range scope.Metrics {
				found[m.Name] = true
			}
		}
	}
	for _, name := range []string{"system.cpu.time", "stallspan.training.epoch.duration"} {
		if !found[name] {
			t.Errorf("no %s: %v", name, found)
		}
	}
}

// A backend that is down does not delay the program, and prints one line. ^C ends the wait at the end.
func TestBackendIsDown(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	v := stallspan(t, "run", "--", "sh", "-c", "echo Epoch 1/1; exit 4")
	v.Env = append(v.Env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+address)
	out := &liveOutput{}
	v.Stderr = out
	v.start()
	out.until(t, 1, "verdict")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for v.Process.Signal(os.Interrupt) == nil { // os.ErrProcessDone when wait has seen the end
			time.Sleep(100 * time.Millisecond)
		}
	}()
	if code := v.wait(); code != 4 {
		t.Errorf("exit code %d", code)
	}
	<-done
	_, said, _ := strings.Cut(out.String(), "\nstallspan: the program failed: exit code 4\nstallspan: ")
	if line, rest, _ := strings.Cut(said, "\n"); !strings.Contains(line, "2 of 2 spans") ||
		!strings.Contains(line, "OTLP") || rest != "" {
		t.Errorf("it says: %s", out.String())
	}
}

func TestNoBackendIsNoMatter(t *testing.T) {
	v := stallspan(t, "run", "--", "echo", "Epoch 1/1")
	if code := v.run(); code != 0 || strings.Contains(v.err.String(), "stallspan:") ||
		strings.Contains(v.err.String(), "OTLP") {
		t.Errorf("exit code %d: %s", code, v.err.String())
	}
}

func TestBackendThatCannotBeFollowed(t *testing.T) {
	marker := t.TempDir() + "/started"
	v := stallspan(t, "run", "--", "touch", marker)
	v.Env = append(v.Env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=smoke")
	code := v.run()
	if line := v.errorLine(); code != cli.ExitRun || !strings.Contains(line, "OTEL_EXPORTER_OTLP_PROTOCOL") {
		t.Errorf("exit code %d: %s", code, line)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the program was started")
	}
}
