//go:build linux && cgo

package emit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
	"github.com/stallspan/stallspan/test/fixture/tape"
)

// A monitor of this machine, with GPUs that have all readings, and the replay of its recording give the same points:
// names, values, attributes, times and starts.
func TestReplayHasSameMetrics(t *testing.T) {
	const gpus = "" +
		"gpu 0 utilization=80 tensor=11 fan=40 throttled_thermal=10 pages_retired=2 processes=4711:1024 xids=13:1\n" +
		"gpu 1 gpm=0\ngpu 2\nmig 2 utilization=60\n"
	library := fixture.NVML(t)
	player := fixture.PlayGPU(t, strings.ReplaceAll(gpus, " xids=13:1", " xids=13:0"))
	t.Setenv("FAKENVML_FILE", player.Path)
	path := filepath.Join(t.TempDir(), "recording.gz")
	m, end := recorded(t, path, library)

	whole := awaited(t, m, func(s *sample.Snapshot) bool {
		return hasDetail(s, "GPU-", sample.GPUTensorActive) && hasDetail(s, "MIG-", sample.GPUSMActive)
	})
	player.Write(gpus + "lost 1\n")
	awaited(t, m, func(s *sample.Snapshot) bool {
		xids := 0
		for _, d := range s.GPUs.GPUDetails {
			xids += len(d.XIDs)
		}
		return xids > 0 && len(s.GPUs.GPUs) == 4 && s.GPUs.GPUs[1].Status == sample.GPULost
	})
	end()
	live, again := emit.NewMetrics("test"), emit.NewMetrics("test")
	live.Collect(whole.Clone())
	again.Collect(whole)
	want := metricsText(live.Collect(m.Collect()))
	got := metricsText(again.Collect(tape.Play(t, path, func(*monitor.Monitor, *recording.Entry) {}).Collect()))
	if got != want {
		t.Errorf("replayed:\n%s\nwatched:\n%s", got, want)
	}
	for _, name := range []string{"hw.gpu.utilization", "hw.gpu.io", "xid_13", "stallspan.gpu.tensor.utilization",
		"stallspan.nvml.call.duration", `hw.state="failed", hw.type="gpu"`, "hw.parent", "system.disk.io"} {
		if !strings.Contains(want, name) {
			t.Errorf("no %s in %s", name, want)
		}
	}
}

// hasDetail reports whether a GPU with this prefix of its id has a quantity.
func hasDetail(s *sample.Snapshot, id string, q sample.GPUQuantity) bool {
	for _, d := range s.GPUs.GPUDetails {
		if _, ok := d.Values.Get(q); ok && strings.HasPrefix(d.GPU, id) {
			return true
		}
	}
	return false
}

// recorded is a monitor that writes what it reads to path, until end is called.
func recorded(t *testing.T, path, library string) (m *monitor.Monitor, end func()) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	header := recording.ThisMachine(monitor.Boot("/"), 100*time.Millisecond, "test")
	w, err := recording.NewWriter(file, header)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = monitor.New(monitor.Config{NVML: library, Journal: w}); err != nil {
		t.Fatal(err)
	}
	m.Start()
	return m, func() {
		m.Stop()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

// awaited is the first snapshot that is as wanted.
func awaited(t *testing.T, m *monitor.Monitor, wanted func(*sample.Snapshot) bool) sample.Snapshot {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if s := m.Collect(); wanted(&s) {
			return s
		}
	}
	m.Stop()
	t.Fatalf("it never came to that: %+v; %v", m.Collect().GPUs, m.Problems())
	return sample.Snapshot{}
}
