//go:build cgo

package receiver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/filter"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture"
)

// wait has the machine below root wait for its disk until stop is called: all of its time passes in reads. The files
// keep their length, and each is written with one call, so that no process reads half of one.
func wait(t *testing.T, root string) (stop func()) {
	began := time.Now()
	var pressure, disks *os.File
	write := func() {
		const base = 1_000_000_000
		waited := time.Since(began)
		us, ms := base+waited.Microseconds(), base+waited.Milliseconds()
		_, _ = pressure.WriteAt(fmt.Appendf(nil, "some avg10=99.00 avg60=9.00 avg300=1.00 total=%d\n"+
			"full avg10=99.00 avg60=9.00 avg300=1.00 total=%d\n", us, us), 0)
		_, _ = disks.WriteAt(fmt.Appendf(nil, " 259 0 nvme0n1 %d 0 %d %d 1 0 8 1 1 %d %d\n",
			ms, 256*ms, ms, ms, ms), 0)
	}
	for path, file := range map[string]**os.File{"proc/pressure/io": &pressure, "proc/diskstats": &disks} {
		var err error
		if *file, err = os.Create(filepath.Join(root, path)); err != nil {
			t.Fatal(err)
		}
	}
	write()
	done := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
				write()
			}
		}
	})
	return func() {
		close(done)
		all.Wait()
		_, _ = pressure.Close(), disks.Close()
	}
}

// A GPU is idle while the machine waits for its disk: the span says so, and so does a log record.
func TestStorageBound(t *testing.T) {
	library := fixture.NVML(t)
	player := fixture.PlayGPU(t, "gpu 0 utilization=0 uuid=GPU-0\ngpu 1 utilization=0 uuid=GPU-1\n")
	t.Setenv("FAKENVML_FILE", player.Path)
	c := laboratory(t)
	c.Sampling.NVML = library
	c.GPUs.Exclude = []filter.Config{{Strict: "1"}}
	p := in(t, NewFactory(), settings(), c, "metrics", "traces", "logs")
	defer wait(t, c.Sampling.RootPath)()
	p.start(t)
	begun := begin(t, c, api.Announcement{Kind: window.ModelLoad, Model: "llama", GPUIDs: []string{"GPU-0"}})
	time.Sleep(2 * time.Second)
	end(t, c, begun.ID)
	eventually(t, "span and log record", func() bool { return p.SpanCount() > 0 && p.LogRecordCount() > 0 })
	span := p.spans()[0]
	if value(span.Attributes(), "stallspan.verdict") != "storage_bound" ||
		value(span.Attributes(), "stallspan.slow") != "true" {
		t.Errorf("span: got %v, want slow and storage_bound", attributes(span.Attributes()))
	}
	record := p.logRecords()[0]
	if !strings.HasPrefix(record.Body().Str(), "load llama, 2") ||
		value(record.Attributes(), "stallspan.model.name") != "llama" {
		t.Errorf("log record: got %q, %v, want that of the load of llama", record.Body().Str(),
			attributes(record.Attributes()))
	}
	if record.EventName() != "stallspan.window.slow" || record.SpanID() != span.SpanID() ||
		record.TraceID() != span.TraceID() {
		t.Errorf("log record: got %s, %v, want stallspan.window.slow in the span", record.EventName(),
			attributes(record.Attributes()))
	}
	all := p.AllMetrics()
	if got := text(all[len(all)-1]); !strings.Contains(got, "hw.id=GPU-0") || strings.Contains(got, "hw.id=GPU-1") {
		t.Errorf("GPU 1 was to be left out:\n%s", got)
	}
}

// A GPU that falls off the bus is one event, unless it is excluded.
func TestGPULost(t *testing.T) {
	library := fixture.NVML(t)
	const both = "gpu 0 uuid=GPU-0\ngpu 1 uuid=GPU-1\n"
	player := fixture.PlayGPU(t, both)
	t.Setenv("FAKENVML_FILE", player.Path)
	c := laboratory(t)
	c.Sampling.NVML = library
	c.GPUs.Exclude = []filter.Config{{Strict: "GPU-1"}}
	p := in(t, NewFactory(), settings(), c, "logs")
	p.start(t)
	player.Write(both + "lost 0\nlost 1\n")
	eventually(t, "log record", func() bool { return p.LogRecordCount() > 0 })
	time.Sleep(1500 * time.Millisecond) // another round of readings or more
	if n := p.LogRecordCount(); n != 1 {
		t.Errorf("%d log records", n)
	}
	record := p.logRecords()[0]
	if record.EventName() != "stallspan.gpu.lost" || value(record.Attributes(), "hw.id") != "GPU-0" ||
		value(record.Attributes(), "hw.state") != "failed" {
		t.Errorf("log record: got %s, %v, want stallspan.gpu.lost of GPU-0", record.EventName(),
			attributes(record.Attributes()))
	}
}
