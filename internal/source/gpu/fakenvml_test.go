//go:build linux && cgo

package gpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// busyAt interpolates the first GPU's Busy.
func (k *recorder) busyAt(t *testing.T, moment time.Duration) time.Duration {
	t.Helper()
	i := slices.IndexFunc(k.rows, func(r sample.Sample) bool { return r.At.Mono >= moment })
	if i < 1 {
		t.Fatalf("got no row at %v, want one", moment)
	}
	a, b := k.rows[i-1], k.rows[i]
	share := float64(moment-a.At.Mono) / float64(b.At.Mono-a.At.Mono)
	return a.GPUs[0].Busy + time.Duration(share*float64(b.GPUs[0].Busy-a.GPUs[0].Busy))
}

func TestBusyTimeOnEachClock(t *testing.T) {
	for _, clock := range []string{"unix", "monotonic", "boot"} {
		t.Run(clock, func(t *testing.T) {
			measured(t, func() (problem string) {
				got, busy := busyOnClock(t, clock)
				if math.Abs(float64(got-busy)) > float64(20*time.Millisecond) { // 50 ms periods in whole percent
					problem = fmt.Sprintf("busy %v, want %v", got, busy)
				}
				return problem
			})
		})
	}
}

// busyOnClock returns the busy time that was read, and that was played, with timestamps of a clock.
func busyOnClock(t *testing.T, clock string) (got, busy time.Duration) {
	t.Helper()
	head := "clock " + clock + "\nperiod_us 50000\n"
	w := playText(t, head+"gpu 0 busy_ns=0\n")
	s, k, stop := runFake(t)
	until(t, "a row", func() bool { _, ok := k.last(); return ok })
	// It is idle at both ends for longer than a row and a sample: work at an edge would be spread over both sides.
	begin := sample.Now().Mono
	time.Sleep(300 * time.Millisecond)
	for step := range 90 { // 150 ms busy, 150 ms idle
		before := sample.Now().Mono
		time.Sleep(10 * time.Millisecond)
		if step%30 < 15 {
			busy += sample.Now().Mono - before
		}
		w.Write(fmt.Sprintf("%sgpu 0 busy_ns=%d\n", head, busy.Nanoseconds()))
	}
	time.Sleep(300 * time.Millisecond)
	end := sample.Now().Mono
	until(t, "rows up to the end", func() bool {
		s.CatchUp(t.Context())
		row, _ := k.last()
		return row.At.Mono >= end
	})
	stop()
	k.check(t)
	if k.errs != nil {
		t.Errorf("got errors %v, want none", k.errs)
	}
	return k.busyAt(t, end) - k.busyAt(t, begin), busy
}

func TestLostGPUReturns(t *testing.T) {
	w := playText(t, "gpu 0 utilization=100\ngpu 1 utilization=100 uuid=GPU-b\n")
	_, k, stop := runFake(t)
	status := func(i int, want sample.GPUStatus) func() bool {
		return func() bool {
			row, ok := k.last()
			return ok && len(row.GPUs) == 2 && row.GPUs[i].Status == want && row.GPUs[i].Busy > 0
		}
	}
	until(t, "both GPUs work", func() bool { return status(0, sample.GPUWorks)() && status(1, sample.GPUWorks)() })
	w.Write("gpu 0 utilization=100\ngpu 1 utilization=100 uuid=GPU-b\nlost 1\n")
	until(t, "GPU 1 is lost", status(1, sample.GPULost))
	lost, _ := k.last()
	if lost.GPUs[0].Status != sample.GPUWorks || lost.GPUs[1].Has&sample.HasMemory != 0 {
		t.Errorf("got %+v, want GPU 1 lost and without gauges", lost.GPUs)
	}
	w.Write("gpu 0 utilization=100\ngpu 1 utilization=100 uuid=GPU-b\n")
	until(t, "GPU 1 works", status(1, sample.GPUWorks))
	until(t, "GPU 1 is busy", func() bool {
		row, _ := k.last()
		return row.GPUs[1].Busy > lost.GPUs[1].Busy+500*time.Millisecond
	})
	w.Write("gpu 0 utilization=100\ngpu 1 uuid=GPU-b\ninit_error 9\n")
	until(t, "nothing is known of both GPUs", func() bool {
		return status(0, sample.GPUUnknown)() && status(1, sample.GPUUnknown)()
	})
	stop()
	k.check(t)
	for _, want := range []string{"GPU-b (NVIDIA Fake 100): the GPU is lost", "unloaded or restarted"} {
		if !strings.Contains(k.errorText(), want) {
			t.Errorf("got errors %s, want %q in them", k.errorText(), want)
		}
	}
}

func TestHangAffectsOneGPU(t *testing.T) {
	gpus := "gpu 0 utilization=60\ngpu 1 utilization=60 uuid=GPU-b\n"
	w := playText(t, gpus)
	_, k, stop := runFake(t)
	until(t, "rows", func() bool { row, ok := k.last(); return ok && row.GPUs[0].Busy > 0 })
	w.Write(gpus + "hang gpu=1 call=nvmlDeviceGetMemoryInfo_v2\n")
	until(t, "GPU 1 hangs", func() bool { row, _ := k.last(); return row.GPUs[1].Status == sample.GPUHung })
	hung, _ := k.last()
	until(t, "GPU 0 is busy during the hang", func() bool {
		row, _ := k.last()
		return row.GPUs[0].Status == sample.GPUWorks && row.GPUs[0].Busy > hung.GPUs[0].Busy+time.Second
	})
	w.Write(gpus)
	until(t, "GPU 1 works", func() bool {
		row, _ := k.last()
		return row.GPUs[1].Status == sample.GPUWorks && row.GPUs[1].Busy > hung.GPUs[1].Busy+100*time.Millisecond
	})
	stop()
	k.check(t)
	if !strings.Contains(k.errorText(), "has not responded to nvmlDeviceGetMemoryInfo for 1s") {
		t.Errorf("got errors %s, want the hang in nvmlDeviceGetMemoryInfo", k.errorText())
	}
	for i := 1; i < len(k.rows); i++ {
		if gap := k.rows[i].At.Mono - k.rows[i-1].At.Mono; gap != 100*time.Millisecond {
			t.Errorf("row %d: got %v after the row before, want 100ms", i, gap)
		}
	}
}

func TestRunEndsDuringHang(t *testing.T) {
	w := playText(t, "gpu 0\nhang gpu=0 call=nvmlDeviceGetSamples\n")
	s, k, stop := runFake(t)
	until(t, "the first call", func() bool { return len(k.errorText()) > 2 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	s.CatchUp(ctx)
	begin := time.Now()
	stop()
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("stopping took %v, want at most 5s", took)
	}
	w.Write("gpu 0\n") // releases the thread
	until(t, "a row with the hang", func() bool { row, ok := k.last(); return ok && row.GPUs[0].Status == sample.GPUHung })
}

func TestGarbageIsDroppedAndReported(t *testing.T) {
	w := playText(t, "gpu 0 utilization=30\ngarbage 0\n")
	_, k, stop := runFake(t)
	until(t, "garbage is reported", func() bool {
		return strings.Contains(k.errorText(), "808334905") || strings.Contains(k.errorText(), "impossible values")
	})
	row, _ := k.last()
	g := row.GPUs[0]
	if g.Busy != 0 || g.Has&^sample.HasLinkMax != sample.LacksBusy || g.Temperature != 0 || g.MemoryUsed != 0 {
		t.Errorf("got %+v, want no gauges and no utilization", g)
	}
	w.Write("gpu 0 utilization=30\n")
	until(t, "valid values again", func() bool {
		row, _ := k.last()
		return row.GPUs[0].Has&(sample.HasTemperature|sample.LacksBusy) == sample.HasTemperature &&
			row.GPUs[0].Busy > 100*time.Millisecond
	})
	stop()
	k.check(t)
	for _, want := range []string{
		"of utilization", "of temperature", "of memory", "of power", "of energy", "of PCIe link",
	} {
		if !strings.Contains(k.errorText(), want) {
			t.Errorf("got errors %s, want %q in them", k.errorText(), want)
		}
	}
}

// A GPU whose utilization queries fail is not reported as idle.
func TestUtilizationErrors(t *testing.T) {
	w := playText(t, "gpu 0 utilization=40\nerror gpu=0 call=nvmlDeviceGetSamples code=999\n"+
		"error gpu=0 call=nvmlDeviceGetUtilizationRates code=999\n")
	_, k, stop := runFake(t)
	until(t, "no utilization", func() bool { row, ok := k.last(); return ok && row.GPUs[0].Has&sample.LacksBusy != 0 })
	w.Write("gpu 0 utilization=40\n")
	until(t, "busy", func() bool {
		row, _ := k.last()
		return row.GPUs[0].Has&sample.LacksBusy == 0 && row.GPUs[0].Busy > 200*time.Millisecond
	})
	stop()
	k.check(t)
}

func TestWithoutUtilizationSamples(t *testing.T) {
	measured(t, func() (problem string) {
		playText(t, "gpu 0 utilization=40\nerror gpu=0 call=nvmlDeviceGetSamples code=3\n")
		_, k, stop := runFake(t)
		until(t, "busy", func() bool { row, ok := k.last(); return ok && row.GPUs[0].Busy > 500*time.Millisecond })
		stop()
		k.check(t)
		last := k.rows[len(k.rows)-1]
		share := float64(last.GPUs[0].Busy) / float64(last.At.Mono-k.rows[0].At.Mono)
		if math.Abs(share-0.4) > 0.1 {
			problem = fmt.Sprintf("busy %v of the time, want 0.4", share)
		}
		return problem
	})
}

func TestProcesses(t *testing.T) {
	playText(t, "gpu 0 processes=17:1024,18\ngpu 1 uuid=GPU-b processes=17:5\n")
	_, k, stop := runFake(t)
	until(t, "rows", func() bool { _, ok := k.last(); return ok })
	stop()
	first := k.rows[0].GPUs[0].ID
	want := []sample.GPUProcess{
		{GPU: first, PID: 17, Memory: 1024, Has: true}, {GPU: first, PID: 18}, {GPU: "GPU-b", PID: 17, Memory: 5, Has: true},
	}
	if got := k.rows[0].GPUProcesses; !k.rows[0].GPUProcessesRead || !slices.Equal(got, want) {
		t.Errorf("got processes %+v, want %+v", got, want)
	}
	if len(k.rows) > 1 && k.rows[1].GPUProcessesRead {
		t.Error("got processes in the second row, want them in the first only")
	}
}

// TestProcessOfStart lists the process of a program that starts after the source, long before processInterval is over.
func TestProcessOfStart(t *testing.T) {
	player := playText(t, "gpu 0\n")
	_, k, stop := runFake(t)
	until(t, "rows", func() bool { _, ok := k.last(); return ok })
	began := time.Now()
	player.Write("gpu 0 processes=17:1024\n")
	until(t, "a process", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return slices.ContainsFunc(k.rows, func(s sample.Sample) bool {
			return len(s.GPUProcesses) == 1 && s.GPUProcesses[0].PID == 17
		})
	})
	if after := time.Since(began); after > processInterval/2 {
		t.Errorf("got the process after %v, want it within %v", after, processInterval/2)
	}
	stop()
}

func TestNoGPU(t *testing.T) {
	for _, c := range []struct{ world, library, want string }{
		{"devices 0\n", "", "has no GPU"},
		{"init_error 18\n", "", "different versions: restart"},
		{"init_error 4\n", "", "no permission"},
		{"init_error 77\n", "", "NVML error 77"},
		{"error gpu=0 call=nvmlDeviceGetUUID code=15\n", "", "GPU 0: the GPU is lost"},
		{"", "/nonexistent/libnvidia-ml.so.1", "no NVIDIA driver"},
		{"", "fakenvml_run_test.go", "cannot be loaded"},
	} {
		playText(t, c.world)
		library := c.library
		if library == "" {
			library = fakeLibrary(t)
		} else if !strings.HasPrefix(library, "/") {
			library, _ = filepath.Abs(library)
		}
		s := New(Options{Library: library, Root: t.TempDir()})
		k := &recorder{}
		ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
		s.Run(ctx, k.sink)
		s.CatchUp(context.Background())
		cancel()
		if len(k.rows) != 0 || len(k.errs) != 1 || !strings.Contains(k.errorText(), c.want) {
			t.Errorf("%q: got %d rows and errors %v, want %q once", c.world, len(k.rows), k.errs, c.want)
		}
		if absent := strings.HasPrefix(c.library, "/"); len(k.errs) == 1 && errors.Is(k.errs[0], ErrNoDriver) != absent {
			t.Errorf("%s: got error %v, want ErrNoDriver: %v", c.library, k.errs, absent)
		}
	}
}

func TestProbe(t *testing.T) {
	playText(t, "driver 570.1\ngpu 0\ngpu 1 uuid=GPU-b name=\"NVIDIA B\"\nerror gpu=1 call=nvmlDeviceGetSamples code=3\n")
	found, err := Probe(t.Context(), Options{Library: fakeLibrary(t)})
	if err != nil || found.Err != nil || found.Driver != "570.1" || found.NVML == "" || len(found.Devices) != 2 {
		t.Fatalf("got %+v, %v, want two devices of driver 570.1", found, err)
	}
	a, b := found.Devices[0], found.Devices[1]
	if a.Err != nil || !slices.Equal(a.Unsupported, []string{"retired pages"}) ||
		len(a.Supported) != len(features(nvidia))-1 {
		t.Errorf("got %+v, want all features except retired pages", a)
	}
	if b.ID != "GPU-b" || b.Name != "NVIDIA B" || b.Index != 1 ||
		!slices.Equal(b.Unsupported, []string{"utilization samples", "retired pages"}) {
		t.Errorf("got %+v, want GPU-b without utilization samples and retired pages", b)
	}
	if _, err := Probe(t.Context(), Options{Library: "/nonexistent.so"}); !errors.Is(err, ErrNoDriver) {
		t.Errorf("got error %v, want ErrNoDriver", err)
	}
	w := playText(t, "gpu 0\nhang call=nvmlDeviceGetName\n")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Probe(ctx, Options{Library: fakeLibrary(t)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got error %v, want a timeout", err)
	}
	w.Write("gpu 0\ngpu 1\ngpu 2\nhang gpu=1 call=nvmlDeviceGetName\n")
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	found, err = Probe(ctx, Options{Library: fakeLibrary(t)})
	if err != nil || len(found.Devices) != 2 || found.Devices[1].Index != 2 || found.Err == nil ||
		!strings.Contains(found.Err.Error(), "GPU 1: the NVIDIA driver did not respond in time") {
		t.Errorf("GPU 1 hangs: got %+v and %v, want the others, and which one hangs", found, err)
	}
	w.Write("gpu 0 uuid=GPU-a\ngpu 1 uuid=GPU-a\n")
	found, err = Probe(t.Context(), Options{Library: fakeLibrary(t)})
	if err != nil || len(found.Devices) != 1 || !strings.Contains(fmt.Sprint(found.Err), "lists GPU-a twice") {
		t.Errorf("twins: got %+v and %v, want one of them, and that they are two", found, err)
	}
	w.Write("gpu 0\n")
}

// TestMissingFunctions runs in its own process, because go-nvml would not bind the functions of a second library.
func TestMissingFunctions(t *testing.T) {
	if library := os.Getenv("FAKENVML_TEST_LIBRARY"); library != "" {
		found, err := Probe(t.Context(), Options{Library: library})
		if err != nil {
			t.Fatal(err)
		}
		s := New(Options{Library: library})
		k := &recorder{}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		s.Run(ctx, k.sink)
		k.check(t)
		fmt.Println("lacks", found.Devices[0].Unsupported, "rows", len(k.rows) > 5, k.errs)
		return
	}
	var absent []string
	for _, name := range []string{"nvmlDeviceGetSamples", "nvmlDeviceGetMemoryInfo_v2",
		"nvmlDeviceGetTotalEnergyConsumption",
		"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlSystemGetNVMLVersion",
		"nvmlDeviceGetFieldValues", "nvmlGpmSampleGet",
		"nvmlDeviceGetViolationStatus", "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons",
		"nvmlDeviceGetFanSpeed", "nvmlDeviceGetRemappedRows", "nvmlEventSetWait_v2", "nvmlEventSetWait",
		"nvmlDeviceGetMigMode"} {
		absent = append(absent, "-D"+name+"=absent_"+name)
	}
	library := fixture.BuildNVML(t, t.TempDir(), absent...)
	again := exec.Command(os.Args[0], "-test.run=^TestMissingFunctions$", "-test.v")
	again.Env = append(os.Environ(), "FAKENVML_TEST_LIBRARY="+library, "FAKENVML_FILE=")
	out, err := again.CombinedOutput()
	const want = "lacks [utilization samples GPM throttle time energy PCIe counters NVLink counters memory temperature " +
		"PCIe link processes XID events fan row remapping retired pages] rows true []"
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("got error %v and output\n%s\nwant %q", err, out, want)
	}
}
