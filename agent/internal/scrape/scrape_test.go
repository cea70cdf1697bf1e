package scrape

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture"
)

// exemplar is the span of a slow window as OpenMetrics writes it, with its labels in any order.
var exemplar = regexp.MustCompile(` # \{(trace_id="0{30}ff"|span_id="0{14}ff"|,){3}\} 5\.0 `)

// handler serves the time of a job, one of whose windows was slow just now.
func handler(t *testing.T, jobs bool) http.Handler {
	t.Helper()
	now := sample.Now()
	began := sample.Stamp{Mono: now.Mono - time.Hour, Wall: now.Wall.Add(-time.Hour)}
	durations := new(emit.Durations)
	o := Options{Resource: resource.Empty(), Jobs: jobs, Own: func() emit.Own { return emit.Own{Since: began.Wall} },
		Collect: func() sample.Snapshot {
			now := sample.Now()
			row := sample.GPUTime{GPU: "GPU-1", Job: "train", Began: began, Until: now, Held: true, Storage: time.Minute}
			total := row
			total.Job = ""
			return sample.Snapshot{Boot: began.Wall, GPUs: sample.Sample{At: now}, GPUTimes: []sample.GPUTime{row},
				GPUTotals: []sample.GPUTime{total}}
		}}
	if jobs {
		o.Durations = durations
	}
	h, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	durations.Add(&window.Report{Judgement: window.Judgement{Slow: true}, Ledger: window.Ledger{Storage: 5 * time.Second}, Window: window.Window{
		Kind: window.Custom, Job: "train", Start: began, End: now,
	}}, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{15: 255}, SpanID: trace.SpanID{7: 255}, TraceFlags: trace.FlagsSampled,
	}))
	return h
}

// lines returns the time that was lost to storage, as OpenMetrics.
func lines(t *testing.T, h http.Handler) (found []string) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, request)
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, "stallspan_gpu_time_seconds_total{") && strings.Contains(line, `cause="storage"`) {
			found = append(found, line)
		}
	}
	return found
}

// The time that a job lost to storage leads to the span of its slow window, at each scrape, for callers that may see
// windows.
func TestExemplars(t *testing.T) {
	all, machine := handler(t, true), handler(t, false)
	for range 2 { // each of two servers
		got := lines(t, all)
		if len(got) != 1 || !exemplar.MatchString(got[0]) || !strings.Contains(got[0], `job_name="train"`) {
			t.Errorf("got %q, want one line with %v", got, exemplar)
		}
	}
	if got := lines(t, machine); len(got) != 1 || strings.Contains(got[0], "span_id") {
		t.Errorf("for others: got %q, want one line without a span", got)
	}
}

// Two series with the same name and labels would be a fault. The others are served, and the fault is reported.
func TestOneBadSeries(t *testing.T) {
	before := otel.GetErrorHandler()
	var reported []error
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { reported = append(reported, err) }))
	defer otel.SetErrorHandler(before)

	now := sample.Now()
	row := func(gpu string) sample.GPUTime {
		return sample.GPUTime{GPU: gpu, Began: now, Until: now, Storage: time.Minute}
	}
	h, err := New(Options{Resource: resource.Empty(), Own: func() emit.Own { return emit.Own{Since: now.Wall} },
		Collect: func() sample.Snapshot {
			return sample.Snapshot{Boot: now.Wall, GPUs: sample.Sample{At: now},
				GPUTotals: []sample.GPUTime{row("GPU-1"), row("GPU-1"), row("GPU-2")}}
		}})
	if err != nil {
		t.Fatal(err)
	}
	if got := lines(t, h); len(got) != 2 {
		t.Errorf("got %q, want a line for each of two GPUs", got)
	}
	if len(reported) == 0 || !strings.Contains(reported[0].Error(), "GPU-1") {
		t.Errorf("reported %v, want the GPU that is there twice", reported)
	}
}

// A real Prometheus keeps the exemplar.
func TestPrometheusKeepsExemplars(t *testing.T) {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("needs prometheus (Debian: prometheus)")
	}
	server := httptest.NewServer(handler(t, true))
	defer server.Close()
	folder, address := t.TempDir(), fixture.FreePort(t)
	config := fmt.Sprintf("scrape_configs:\n- job_name: agent\n  scrape_interval: 1s\n  static_configs:\n"+
		"  - targets: [%q]\n", strings.TrimPrefix(server.URL, "http://"))
	if err := os.WriteFile(filepath.Join(folder, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = said.Close() }()
	prometheus := exec.CommandContext(t.Context(), program, "--config.file="+folder+"/prometheus.yml",
		"--storage.tsdb.path="+folder+"/data", "--web.listen-address="+address,
		"--enable-feature=exemplar-storage")
	prometheus.Stderr = said
	if err := prometheus.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = prometheus.Process.Kill(); _ = prometheus.Wait() }()
	query := url.Values{"query": {`stallspan_gpu_time_seconds_total{stallspan_gpu_time_cause="storage"}`},
		"start": {fmt.Sprint(time.Now().Add(-time.Hour).Unix())}, "end": {fmt.Sprint(time.Now().Add(time.Hour).Unix())}}
	var text string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		var kept bool
		if text, kept = stored(t, "http://"+address+"/api/v1/query_exemplars?"+query.Encode()); kept {
			return
		}
	}
	log, _ := os.ReadFile(said.Name())
	t.Errorf("got %s, want the span of the slow window: %s", text, log)
}

// stored reports whether Prometheus has the exemplar.
func stored(t *testing.T, address string) (text string, kept bool) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error(), false // it has not started yet
	}
	defer func() { _ = response.Body.Close() }()
	body, _ := io.ReadAll(response.Body)
	var answer struct {
		Data []struct {
			Exemplars []struct {
				Labels map[string]string
				Value  string
			}
		}
	}
	if json.Unmarshal(body, &answer) != nil || len(answer.Data) != 1 || len(answer.Data[0].Exemplars) != 1 {
		return string(body), false
	}
	e := answer.Data[0].Exemplars[0]
	return string(body), e.Value == "5" && e.Labels["span_id"] == "00000000000000ff" &&
		e.Labels["trace_id"] == "000000000000000000000000000000ff"
}
