//go:build cgo

package receiver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
)

// Two slow loads that read from one disk at once are an I/O storm: it has one log record and one event on a span,
// and a third load in the same storm adds none. On a busy machine, the size of a model may be known too late, and
// readings may be missing: then it is tried again.
func TestStorm(t *testing.T) {
	var wrong string
	for range 5 {
		if wrong = storm(t); wrong == "" {
			return
		}
		t.Log(wrong)
	}
	t.Errorf("the last of five storms: %s", wrong)
}

// storm makes a storm and returns what is wrong with what was sent of it; "" if nothing is.
func storm(t *testing.T) string {
	c := laboratory(t)
	root := c.Sampling.RootPath
	if err := os.WriteFile(filepath.Join(root, "model.bin"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	// The disk that holds it, by the number that the mount has.
	devices := filepath.Join(root, "sys/dev/block")
	if err := os.MkdirAll(devices, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../class/block/nvme0n1", filepath.Join(devices, "259:1")); err != nil {
		t.Fatal(err)
	}
	p := in(t, NewFactory(), settings(), c, "metrics", "traces", "logs")
	defer wait(t, root)()
	p.start(t)
	var open []string
	for i, model := range []string{"one", "two", "three"} { // each of another program: PIDs that the root's /proc lacks
		a := api.Announcement{Kind: window.ModelLoad, Model: model, Path: "/model.bin", PID: 1<<22 - i}
		open = append(open, begin(t, c, a).ID)
	}
	time.Sleep(2 * time.Second)
	for _, id := range open {
		end(t, c, id)
	}
	for start := time.Now(); p.SpanCount() < 3 || p.LogRecordCount() < 4; time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			p.stop(t)
			return fmt.Sprintf("%d spans and %d log records within 10 s, want 3 and 4", p.SpanCount(), p.LogRecordCount())
		}
	}
	p.stop(t) // whatever else there were would have left
	storms := 0
	for _, r := range p.logRecords() {
		if r.EventName() != "stallspan.io.storm" {
			continue
		}
		storms++
		if value(r.Attributes(), "system.device.name") != "nvme0n1" ||
			value(r.Attributes(), "stallspan.io.storm.windows") != "3" {
			return fmt.Sprintf("storm: got %v, want 3 windows on nvme0n1", attributes(r.Attributes()))
		}
	}
	if storms != 1 || p.LogRecordCount() != 4 {
		return fmt.Sprintf("%d storms in %d log records, want 1 in 4", storms, p.LogRecordCount())
	}
	storms = 0
	for _, span := range p.spans() {
		for i := range span.Events().Len() {
			if span.Events().At(i).Name() == "stallspan.io.storm" {
				storms++
			}
		}
		if span.Name() == "load one" && value(span.Attributes(), "stallspan.model.size") != "1048576" {
			return fmt.Sprintf("load one: got %v, want a model of 1048576 bytes", attributes(span.Attributes()))
		}
	}
	if storms != 1 {
		return fmt.Sprintf("%d storms in spans, want 1", storms)
	}
	return ""
}
