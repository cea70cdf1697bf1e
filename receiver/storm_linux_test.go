//go:build cgo

package receiver

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
)

// Two slow loads that read from one disk at once are an I/O storm: one log record and one event on a span tell of it,
// and a third load in the same storm adds none.
func TestStorm(t *testing.T) {
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
	for _, model := range []string{"one", "two", "three"} {
		open = append(open, begin(t, c, api.Announcement{Kind: window.ModelLoad, Model: model, Path: "/model.bin"}).ID)
	}
	time.Sleep(2 * time.Second)
	for _, id := range open {
		end(t, c, id)
	}
	eventually(t, "spans and log records", func() bool { return p.SpanCount() >= 3 && p.LogRecordCount() >= 4 })
	p.stop(t) // whatever else there were would have left
	told := 0
	for _, r := range p.logRecords() {
		if r.EventName() != "stallspan.io.storm" {
			continue
		}
		told++
		if value(r.Attributes(), "system.device.name") != "nvme0n1" || value(r.Attributes(), "stallspan.io.storm.windows") != "3" {
			t.Error(attributes(r.Attributes()))
		}
		t.Log(r.Body().Str())
	}
	if told != 1 || p.LogRecordCount() != 4 {
		t.Errorf("%d storms in %d log records", told, p.LogRecordCount())
	}
	told = 0
	for _, span := range p.spans() {
		for i := range span.Events().Len() {
			if span.Events().At(i).Name() == "stallspan.io.storm" {
				told++
			}
		}
		if span.Name() == "load one" && value(span.Attributes(), "stallspan.model.size") != "1048576" {
			t.Error(attributes(span.Attributes()))
		}
	}
	if told != 1 {
		t.Errorf("%d storms in spans", told)
	}
}
