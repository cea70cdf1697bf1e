package recording_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/emulate"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

var update = flag.Bool("update", false, "record testdata/recordings again, on this machine")

// TestMake records the files that the replaying tests read: a load of a model that is not in memory, a training epoch
// over files that are not, the same epoch from memory, and a checkpoint; once as a machine without an accelerator sees
// it, once with an emulated one, and once with the emulated one behind the stand-in for the NVIDIA driver's library.
// "threads" is a short one with the scheduler's events, which needs root.
func TestMake(t *testing.T) {
	if !*update {
		t.Skip("records again with -update; needs Linux with PSI and a temporary folder on a disk")
	}
	for _, name := range []string{"cpu_only", "accelerator", "gpu", "threads"} {
		t.Run(name, func(t *testing.T) {
			bytes, length := int64(256<<20), 3*time.Second
			if name == "threads" {
				bytes, length = 32<<20, time.Second
			}
			files, err := emulate.Prepare(t.Context(), "", emulate.Options{Bytes: bytes})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = files.Close() }()
			accelerator := emulate.NewAccelerator("emulated-0")
			plan, err := emulate.Calibrate(t.Context(), files, accelerator, length)
			if err != nil {
				t.Fatal(err)
			}
			var config monitor.Config
			switch name {
			case "threads":
				config.Accelerator, config.Schedule = accelerator, true
			case "accelerator":
				config.Accelerator = accelerator
			case "gpu":
				config.NVML = fixture.NVML(t)
				defer play(t, accelerator)()
			}
			path := fixture.File(t, "recordings", name+".jsonl.gz")
			record(t, path, config, func(ctx context.Context) error { return work(ctx, files, accelerator, plan) })
		})
	}
}

// allValues has a value of every kind for the emulated GPU, besides its busy time, so that replays emit every metric.
const allValues = "encoder=3 decoder=7 controller=20 sm=60 occupancy=30 tensor=11 dram=25 " +
	"pcie_received=2e8 pcie_sent=1e7 nvlink_received=3e6 nvlink_sent=2e6 fan=40 throttled_power=12 throttled_thermal=1 " +
	"errors_corrected=2 errors_uncorrected=0 pcie_replays=1 rows_remapped=1 repair_pending=0 repair_failed=0"

// play has the stand-in's GPU do what the accelerator does, until the test calls what it gives.
func play(t *testing.T, accelerator *emulate.Accelerator) (stop func()) {
	player := fixture.PlayGPU(t, "gpu 0 busy_ns=0 "+allValues)
	t.Setenv("FAKENVML_FILE", player.Path)
	over := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		xids := 0
		for {
			var s sample.Sample
			_ = accelerator.Read(&s) // never fails
			player.Write(fmt.Sprintf("gpu 0 busy_ns=%d processes=%d:2147483648 %s xids=13:%d\n",
				s.GPUs[0].Busy, os.Getpid(), allValues, xids))
			xids = 1 // once it is looked for
			select {
			case <-over:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	return func() {
		close(over)
		done.Wait()
	}
}

// record watches this process while it works.
func record(t *testing.T, path string, config monitor.Config, work func(context.Context) error) {
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	about, err := monitor.New(config)
	if err != nil {
		t.Fatal(err)
	}
	header := recording.ThisMachine(about.Collect().Boot, about.Interval(), "0.1.0")
	about.Stop()
	header.Host, header.Kernel = "recorded", "linux" // without the names of the machine
	w, err := recording.NewWriter(file, header)
	if err != nil {
		t.Fatal(err)
	}
	config.Journal = w
	m, err := monitor.New(config)
	if err != nil {
		t.Fatal(err)
	}
	m.Start()
	if err := m.Jobs.Follow("train", os.Getpid(), "", false); err != nil {
		t.Fatal(err)
	}
	if err := work(t.Context()); err != nil {
		t.Error(err)
	}
	m.Tick()
	m.Jobs.Unfollow("train")
	m.Stop()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 200<<10 {
		t.Errorf("%s is too large for the repository: %v", path, info.Size())
	}
}

func work(ctx context.Context, files *emulate.Files, accelerator *emulate.Accelerator, plan emulate.Plan) error {
	if err := files.Cold(); err != nil {
		return err
	}
	if err := emulate.Load(ctx, files); err != nil {
		return err
	}
	if err := files.Cold(); err != nil {
		return err
	}
	if err := emulate.Epoch(ctx, files, accelerator, plan); err != nil {
		return err
	}
	if err := files.Warm(ctx); err != nil {
		return err
	}
	if err := emulate.Epoch(ctx, files, accelerator, plan); err != nil {
		return err
	}
	return checkpoint(filepath.Join(filepath.Dir(files.Model()), "checkpoint.bin"))
}

// checkpoint writes a state of 32 MiB, through to the disk.
func checkpoint(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	for range 32 {
		if _, err := file.Write(make([]byte, 1<<20)); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
	}
	return nil
}
