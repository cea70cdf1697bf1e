package collector

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/emulate"
	"github.com/stallspan/stallspan/internal/window"
)

// An announced window becomes a span with the numbers of its report.
func TestAnnouncedWindow(t *testing.T) {
	c := prepare(t, "--config", "../../examples/collector/file.yaml").start()
	files, client := coldFiles(t, 128*mib), api.NewClient(c.socket())
	if err := files.Cold(); err != nil {
		t.Fatal(err)
	}
	begun, err := client.Begin(t.Context(), api.Announcement{Kind: window.ModelLoad, Model: "bert", PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	if err := emulate.Load(context.Background(), files); err != nil {
		t.Fatal(err)
	}
	text, err := client.End(t.Context(), begun.ID)
	if err != nil {
		t.Fatal(err)
	}
	var report struct {
		Verdict  string
		Duration float64 `json:"duration_s"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	s := c.find("load bert")
	if got := s.seconds(t); got < report.Duration-1e-3 || got > report.Duration+1e-3 {
		t.Errorf("duration of the span: got %v s, want the %v s of the report", got, report.Duration)
	}
	if s.Attributes["stallspan.verdict"] != report.Verdict || s.Attributes["stallspan.window.source"] != "announced" {
		t.Errorf("attributes of the span: got %v, want the verdict %s and the source announced", s.Attributes, report.Verdict)
	}
	if read := s.Attributes.number("stallspan.disk.read.bytes"); read < 0.95*float64(files.ModelBytes()) {
		t.Errorf("bytes read: got %v, want at least 95 %% of %d", read, files.ModelBytes())
	}
	if want := "00-" + s.TraceID + "-" + s.SpanID + "-"; !strings.HasPrefix(begun.Traceparent, want) {
		t.Errorf("traceparent: got %s, want %s of the span", begun.Traceparent, want)
	}
	c.stop()
}

// A Collector that stops ends the open windows.
func TestStopWithOpenWindow(t *testing.T) {
	c := prepare(t, "--config", "../../examples/collector/file.yaml").start()
	if _, err := api.NewClient(c.socket()).Begin(t.Context(),
		api.Announcement{Kind: window.Custom, Name: "never ended"}); err != nil {
		t.Fatal(err)
	}
	c.stop()
	for _, s := range c.spans() {
		if s.Attributes["stallspan.window.name"] != "never ended" {
			continue
		}
		if s.Attributes["stallspan.window.unfinished"] != true {
			t.Errorf("attributes: got %v, want stallspan.window.unfinished", s.Attributes)
		}
		return
	}
	t.Error("spans: got none of the open window, want one")
}
