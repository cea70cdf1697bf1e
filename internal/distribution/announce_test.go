package distribution

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

// A window that is announced to the receiver becomes a span, with the report's own numbers.
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
	if _, err := emulate.Load(context.Background(), files, emulate.LoadOptions{}); err != nil {
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
		t.Errorf("the span took %v s, the report says %v s", got, report.Duration)
	}
	if s.Attributes["stallspan.verdict"] != report.Verdict || s.Attributes["stallspan.window.source"] != "announced" {
		t.Errorf("the report says %s: %v", report.Verdict, s.Attributes)
	}
	if read := s.Attributes.number("stallspan.disk.read.bytes"); read < 0.95*float64(files.ModelBytes()) {
		t.Errorf("%v bytes were read, of a file of %d", read, files.ModelBytes())
	}
	if want := "00-" + s.TraceID + "-" + s.SpanID + "-"; !strings.HasPrefix(begun.Traceparent, want) {
		t.Errorf("the program was told %s, the span is %s", begun.Traceparent, want)
	}
	c.stop()
}

// A Collector that is stopped loses no window.
func TestStoppedInAWindow(t *testing.T) {
	c := prepare(t, "--config", "../../examples/collector/file.yaml").start()
	if _, err := api.NewClient(c.socket()).Begin(t.Context(), api.Announcement{Kind: window.Custom, Name: "never ended"}); err != nil {
		t.Fatal(err)
	}
	c.stop()
	for _, s := range c.spans() {
		if s.Attributes["stallspan.window.name"] != "never ended" {
			continue
		}
		if s.Attributes["stallspan.window.unfinished"] != true {
			t.Errorf("%v", s.Attributes)
		}
		return
	}
	t.Error("the span of the open window was lost")
}
