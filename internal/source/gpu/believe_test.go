//go:build linux && cgo

package gpu

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// zeros is a GPU whose driver answers SUCCESS with zeros, and with processes that cannot be.
const zeros = "gpu 0 name=\"NVIDIA Tegra Fake\" utilization=0 memory_used=0 memory_total=0 gpm=0 controller=0 " +
	"processes=0:0,4294967295:0\n"

// rowOf runs a source until a row of its only GPU is as wanted, and returns it.
func rowOf(t *testing.T, root, text, what string, ok func(s sample.Sample, g sample.GPU) bool) (
	row sample.Sample, errs string) {
	t.Helper()
	playText(t, text)
	_, k, stop := runFakeOn(t, root)
	until(t, what, func() bool {
		var some bool
		row, some = k.last()
		return some && ok(row, row.GPUs[0])
	})
	stop()
	return row, k.errorText()
}

func TestZerosAreNotBelieved(t *testing.T) {
	lacksBusy := func(_ sample.Sample, g sample.GPU) bool { return g.Has&sample.LacksBusy != 0 }
	_, errs := rowOf(t, t.TempDir(), zeros, "busy time that is not usable", lacksBusy)
	if strings.Contains(errs, "Xid") || strings.Contains(errs, "impossible") {
		t.Errorf("got errors %s, want no hint of a broken GPU", errs)
	}
	row, _ := rowOf(t, t.TempDir(), zeros, "a list of processes", func(s sample.Sample, _ sample.GPU) bool {
		return s.GPUProcessesRead
	})
	if len(row.GPUProcesses) != 0 || row.GPUs[0].Has&sample.HasMemory != 0 {
		t.Errorf("got %+v, want neither processes nor memory", row)
	}
}

func TestLoadOfTheKernel(t *testing.T) {
	for _, path := range []string{"sys/devices/gpu.0/load", "sys/devices/platform/17000000.gpu/load",
		"sys/devices/platform/bus@0/17000000.gpu/load"} {
		root := t.TempDir()
		fixture.Write(t, root, path, []byte("912\n"))
		var first time.Duration
		row, _ := rowOf(t, root, zeros, "busy time by "+path, func(_ sample.Sample, g sample.GPU) bool {
			if first == 0 {
				first = g.Busy
			}
			return g.Busy > first+300*time.Millisecond
		})
		if row.GPUs[0].Has&sample.LacksBusy != 0 {
			t.Errorf("%s: got %+v, want known busy time", path, row.GPUs[0])
		}
	}
	two := t.TempDir()
	fixture.Write(t, two, "sys/devices/platform/1.gpu/load", []byte("912\n"))
	fixture.Write(t, two, "sys/devices/platform/2.gpu/load", []byte("12\n"))
	for root, want := range map[string]bool{two: false, t.TempDir(): false} {
		if load, known := (&machine{root: root}).load(); known != want {
			t.Errorf("%s: got a load of %v, want none", root, load)
		}
	}
}

// The driver of a GPU that shares the machine's memory may report none, or count the page cache.
func TestSharedMemory(t *testing.T) {
	root := t.TempDir()
	fixture.Write(t, root, "proc/meminfo", []byte("MemTotal:       125000000 kB\nMemFree: 1 kB\n"))
	const processes = " processes=7:3000000000,8:500000000\n"
	for name, text := range map[string]string{
		"not supported": "gpu 0 name=\"NVIDIA GB10 Fake\" gpm=0" + processes +
			"error gpu=0 call=nvmlDeviceGetMemoryInfo_v2 code=3\nerror gpu=0 call=nvmlDeviceGetMemoryInfo code=3\n",
		"with the page cache": "gpu 0 name=\"NVIDIA GB10 Fake\" memory_used=90e9 memory_total=128e9" + processes,
		"by its size":         "gpu 0 name=\"NVIDIA New\" memory_used=90e9 memory_total=128000000000" + processes,
	} {
		row, _ := rowOf(t, root, text, name, func(_ sample.Sample, g sample.GPU) bool { return g.Has&sample.HasMemory != 0 })
		if g := row.GPUs[0]; g.MemoryUsed != 3_500_000_000 || g.MemoryTotal != 128_000_000_000 {
			t.Errorf("%s: got %d of %d bytes in use, want 3.5e9 of 128e9", name, g.MemoryUsed, g.MemoryTotal)
		}
	}
	row, _ := rowOf(t, root, "gpu 0 memory_used=90e9 memory_total=100e9"+processes, "memory of its own",
		func(_ sample.Sample, g sample.GPU) bool { return g.Has&sample.HasMemory != 0 })
	if g := row.GPUs[0]; g.MemoryUsed != 90_000_000_000 {
		t.Errorf("memory of its own: got %d bytes in use, want 90e9", g.MemoryUsed)
	}
}

func TestProcessesOfAnotherNamespace(t *testing.T) {
	root := t.TempDir()
	link := func(path, to string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	link("proc/self/ns/pid", "pid:[4026532567]")
	link("proc/7/fd/3", "/dev/null")
	link("proc/8/fd/3", "/dev/nvidia0")
	link("proc/9/fd/4", "/dev/null")
	fixture.Write(t, root, "proc/9/maps", []byte("7f00-7f01 r-xp 0 08:01 5 /usr/lib/libcuda.so.570.1\n"))
	const text = "gpu 0 processes=7:1000,8:1000,9:1000,10:1000\n"
	row, errs := rowOf(t, root, text, "processes", hasProcesses)
	if pids := pidsOf(row); !slices.Equal(pids, []int{8, 9}) {
		t.Errorf("got processes %v, want those that use a GPU here, 8 and 9", pids)
	}
	if !strings.Contains(errs, "another PID namespace: windows cover the GPUs that worked") {
		t.Errorf("got errors %s, want that the numbers are of another namespace", errs)
	}
	if err := os.Remove(filepath.Join(root, "proc/self/ns/pid")); err != nil {
		t.Fatal(err)
	}
	link("proc/self/ns/pid", "pid:[4026531836]")
	row, errs = rowOf(t, root, text, "processes", hasProcesses)
	if pids := pidsOf(row); len(pids) != 4 || strings.Contains(errs, "namespace") {
		t.Errorf("the driver's namespace: got processes %v and errors %s, want all four", pids, errs)
	}
}

func hasProcesses(s sample.Sample, _ sample.GPU) bool { return len(s.GPUProcesses) > 0 }

func pidsOf(s sample.Sample) (pids []int) {
	for _, p := range s.GPUProcesses {
		pids = append(pids, p.PID)
	}
	return pids
}

// Each way in which a driver may be limited or broken has one sentence that says so and what to do.
func TestConditions(t *testing.T) {
	wsl, loaded := t.TempDir(), t.TempDir()
	fixture.Write(t, wsl, "dev/dxg", nil)
	fixture.Write(t, loaded, "sys/devices/gpu.0/load", []byte("912\n"))
	const noBusy = "error call=nvmlDeviceGetSamples code=3\nerror call=nvmlDeviceGetUtilizationRates code=3\n"
	for name, c := range map[string]struct {
		root, text string
		device     int
		busy       bool
		means      string // "" for nothing
	}{
		"a whole GPU":      {"", "gpu 0\n", 0, true, ""},
		"zeros":            {t.TempDir(), zeros, 0, false, "its busy time is not usable"},
		"zeros and a load": {loaded, zeros, 0, true, "is the kernel's load"},
		"shared memory":    {"", "gpu 0 name=\"NVIDIA GB10\"\n", 0, true, "shares the machine's memory"},
		"ones":             {"", "gpu 0\nones 0\n", 0, false, "numbers that cannot be"},
		"MIG":              {"", "gpu 0\nmig 0\n", 1, false, "run it on a GPU without MIG"},
		"vGPU":             {"", "gpu 0 name=\"NVIDIA A40-8Q\"\n", 0, true, "on its host"},
		"MIG-backed vGPU":  {"", "gpu 0 name=\"GRID A100-1-5C\"\n", 0, true, "on its host"},
		"no vGPU":          {"", "gpu 0 name=\"NVIDIA A100-SXM4-80GB\"\n", 0, true, ""},
		"WSL2": {wsl, "gpu 0\n" + noBusy + "error call=nvmlDeviceGetComputeRunningProcesses_v3 code=3\n", 0, false,
			"stallspan attach PID"},
		"no memory, no processes": {t.TempDir(), "gpu 0\nerror call=nvmlDeviceGetMemoryInfo_v2 code=3\n" +
			"error call=nvmlDeviceGetMemoryInfo code=3\nerror call=nvmlDeviceGetComputeRunningProcesses_v3 code=3\n", 0, true, ""},
		"a GPU with MIG":   {"", "gpu 0\nmig 0\n", 0, false, "run it on a GPU without MIG"},
		"used over total":  {"", "gpu 0 memory_used=90e9 memory_total=80e9\n", 0, true, "dropped (memory)"},
		"an old driver":    {"", "driver 470.1\ngpu 0 gpm=0\n", 0, true, "GPM since 520"},
		"lacks a function": {"", "gpu 0\nerror call=nvmlDeviceGetEnforcedPowerLimit code=13\n", 0, true, "a newer driver"},
	} {
		playText(t, c.text)
		found, err := Probe(t.Context(), Options{Library: fakeLibrary(t), Root: c.root})
		if err != nil || found.Err != nil || len(found.Devices) <= c.device {
			t.Errorf("%s: got %+v, %v, want the device", name, found, err)
			continue
		}
		d := found.Devices[c.device]
		notes := strings.Join(d.Notes, "\n")
		if d.Busy != c.busy || !strings.Contains(notes, c.means) || (notes == "") != (c.means == "") || len(d.Notes) > 2 {
			t.Errorf("%s: got busy time %v and %q, want %v and %q", name, d.Busy, d.Notes, c.busy, c.means)
		}
	}
	for name, c := range map[string]struct{ text, says string }{
		"other versions": {"gpu 0\ninit_error 18\n", "different versions"},
		"off the bus":    {"gpu 0\ngpu 1\nlost 1\n", "GPU 1: the GPU is lost: look for NVRM and Xid"},
		"unloaded meanwhile": {"gpu 0\ngpu 1\nerror gpu=1 call=nvmlDeviceGetHandleByIndex_v2 code=1\n",
			"the session with the NVIDIA driver has ended"},
		"off the bus, hidden": {"gpu 0\ngpu 1\nerror gpu=1 call=nvmlDeviceGetUUID code=999\n", "GPU 1: NVML error 999"},
	} {
		playText(t, c.text)
		found, err := Probe(context.Background(), Options{Library: fakeLibrary(t)})
		said := ""
		for _, err := range []error{err, found.Err} {
			if err != nil {
				said += err.Error()
			}
		}
		if !strings.Contains(said, c.says) {
			t.Errorf("%s: got %q, want %q", name, said, c.says)
		}
	}
}

// What a driver returns with all bits set is not available. It is absent, and no sign of a broken GPU.
func TestOnesAreNotBelieved(t *testing.T) {
	lacksBusy := func(_ sample.Sample, g sample.GPU) bool { return g.Has&sample.LacksBusy != 0 }
	row, errs := rowOf(t, t.TempDir(), "gpu 0\nones 0\n", "busy time that is not usable", lacksBusy)
	g := row.GPUs[0]
	if g.Has&^(sample.LacksBusy|sample.HasLinkMax) != 0 || strings.Contains(errs, "Xid") {
		t.Errorf("got %+v and errors %s, want no value and no hint of a broken GPU", g, errs)
	}
	for _, d := range row.GPUDetails {
		for q, value := range d.Values.All() {
			if value != 0 {
				t.Errorf("%v: got %v, want none", q, value)
			}
		}
	}

	w := playText(t, "gpu 0 utilization=90\nones 0\n")
	_, k, stop := runFake(t)
	until(t, "it answers with ones", func() bool { row, ok := k.last(); return ok && lacksBusy(row, row.GPUs[0]) })
	w.Write("gpu 0 utilization=90\n")
	const all = sample.HasMemory | sample.HasTemperature | sample.HasPower | sample.HasLink
	until(t, "it is back, with all values", func() bool {
		row, _ := k.last()
		g := row.GPUs[0]
		return g.Has&(all|sample.LacksBusy) == all && g.Busy > 100*time.Millisecond
	})
	stop()
	k.check(t)
}

// A missing NVIDIA driver is no problem on a machine without one, unless its library was asked for.
func TestLacksDriver(t *testing.T) {
	m := &machine{root: t.TempDir(), mayLack: true}
	for err, want := range map[error]bool{ErrNoDriver: true, ErrNotBuilt: true, context.Canceled: false} {
		if got := m.lacks(err); got != want || (&machine{root: m.root}).lacks(err) {
			t.Errorf("%v: got %v, want %v, and false for a library", err, got, want)
		}
	}
	fixture.Write(t, m.root, "proc/driver/nvidia/version", nil)
	if m.lacks(ErrNoDriver) {
		t.Error("its module is loaded: got no problem, want one")
	}
}
