package amd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	id     = "GPU-4b2c1a9f00112233"
	device = "sys/class/drm/card1/device/"
)

// machine writes the files of a machine with one card.
func machine(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for path, text := range map[string]string{
		"proc/sys/kernel/osrelease":              "6.12.0\n",
		device + "uevent":                        "DRIVER=amdgpu\nPCI_ID=1002:74A1\nPCI_SLOT_NAME=0000:03:00.0\n",
		device + "unique_id":                     "4b2c1a9f00112233\n",
		device + "product_name":                  "AMD Instinct MI300X\n",
		device + "power/runtime_status":          "active\n",
		device + "power/control":                 "on\n",
		device + "mem_info_vram_used":            "1000\n",
		device + "mem_info_vram_total":           "4000\n",
		device + "mem_info_gtt_used":             "10\n",
		device + "mem_info_gtt_total":            "100\n",
		device + "current_link_width":            "16\n",
		device + "current_link_speed":            "32.0 GT/s PCIe\n",
		device + "max_link_width":                "16\n",
		device + "max_link_speed":                "32.0 GT/s PCIe\n",
		device + "gpu_busy_percent":              "70\n",
		device + "hwmon/hwmon3/temp1_input":      "61000\n",
		device + "hwmon/hwmon3/temp1_crit":       "100000\n",
		device + "hwmon/hwmon3/temp2_input":      "63000\n",
		device + "hwmon/hwmon3/temp2_crit":       "110000\n",
		device + "hwmon/hwmon3/temp3_crit":       "94000\n",
		device + "hwmon/hwmon3/power1_average":   "300000000\n",
		device + "hwmon/hwmon3/power1_cap":       "750000000\n",
		device + "ras/umc_err_count":             "ue: 1\nce: 4\n",
		device + "ras/gfx_err_count":             "ue: 0\nce: 2\n",
		"sys/class/drm/card1-DP-1/device/uevent": "DRIVER=amdgpu\n",
		"sys/class/drm/card2/device/uevent":      "DRIVER=nouveau\nPCI_SLOT_NAME=0000:04:00.0\n",
	} {
		fixture.Write(t, root, path, []byte(text))
	}
	for path, text := range files {
		if text == "" {
			_ = os.Remove(filepath.Join(root, path))
			continue
		}
		fixture.Write(t, root, path, []byte(text))
	}
	return root
}

// at returns gpu_metrics of a card after so many milliseconds, that has worked for a share of them.
func at(content int, ms uint64, share float64) []byte {
	const began = math.MaxUint32 - 5500 // the sums wrap
	return encode(content, map[field]uint64{
		activity: 70, socketPower: 400, energy: (ms + 1000) * 400 << 16 / 1000, hotspot: 65, memoryHeat: 50,
		graphicsClock: 2100, memoryClock: 1300, activitySum: uint64(uint32(began + uint64(float64(ms)*share*100))),
		counts: uint64(uint32(began + ms)), firmwareTime: ms * 100_000, powerCounts: uint64(uint32(began + ms/4)),
		thermalCounts: 7, processorHotCounts: 7, replays: 3, controller: 20,
	})
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name    string
		table   []byte
		heat    float64
		power   float64
		clock   float64
		slow    float64
		memory  uint64
		average float64
		has     sample.GPUFields
	}{
		{"summed", at(6, 1000, .4), 65, 400, 2100e6, 110, 1000, .7, sample.HasEnergy},
		{"without a table", nil, 61, 300, 0, 100, 1000, .7, 0},
		{"all ones", encode(3, nil), 61, 300, 0, 100, 1000, .7, 0},
		{"APU", []byte{120, 0, 2, 1}, 61, 300, 0, 100, 1010, .7, 0},
		{"newer", []byte{120, 0, 1, 9}, 61, 300, 0, 100, 1000, .7, 0},
		{"garbage", encode(3, map[field]uint64{activity: 7000, edge: 9000, socketPower: 60000}), 0, 0, 0, 100, 1000, 70, 0},
	} {
		root := machine(t, map[string]string{device + "gpu_metrics": string(c.table)})
		cards := list(root)
		if len(cards) != 1 {
			t.Fatalf("%s: got %d cards, want 1", c.name, len(cards))
		}
		r := cards[0].read(request{true, true})
		clock, _ := r.detail.Get(sample.GPUClockGraphics)
		if g := r.gauges; g.Temperature != c.heat || g.Power != c.power || clock != c.clock || g.MemoryUsed != c.memory ||
			g.Has&sample.HasEnergy != c.has || g.LinkGeneration != 5 || g.LinkWidth != 16 || r.average != c.average ||
			r.averages != (c.average <= 1) {
			t.Errorf("%s: got %+v, clock %v and average %v, %v", c.name, g, clock, r.average, r.averages)
		}
		corrected, _ := r.slow.Get(sample.GPUErrorsCorrected)
		uncorrected, _ := r.slow.Get(sample.GPUErrorsUncorrected)
		limit, _ := r.slow.Get(sample.GPUPowerLimit)
		slow, _ := r.slow.Get(sample.GPUSlowdownAt)
		if corrected != 6 || uncorrected != 1 || limit != 750 || slow != c.slow {
			t.Errorf("%s: got errors %v, %v, a power limit of %v and %v degrees", c.name, corrected, uncorrected, limit, slow)
		}
	}
}

func TestBusyTime(t *testing.T) {
	for content := range structures {
		root := machine(t, nil)
		g := &state{card: list(root)[0]}
		summed := content > 0
		began := time.Duration(0)
		for i := range 20 {
			ms := uint64(i * 1000)
			fixture.Write(t, root, device+"gpu_metrics", at(content, ms, .4))
			r := g.card.read(request{true, i == 0})
			r.at.Mono = time.Duration(ms+1) * time.Millisecond
			g.apply(&r)
			if i == 0 {
				began = g.busy
			}
		}
		want, averaged := time.Duration(float64(19*time.Second)*.4), false
		if !summed {
			want, averaged = time.Duration(float64(19*time.Second)*.7), true
		}
		if got := g.busy - began; (got-want).Abs() > time.Millisecond || g.averaged != averaged || g.unknown {
			t.Errorf("1.%d: got busy %v, averaged %v, want %v, %v", content, got, g.averaged, want, averaged)
		}
		power, known := g.detail.Values.Get(sample.GPUThrottledPower)
		if content >= 6 && (math.Abs(power-19./4) > .01) || known != (content >= 6) {
			t.Errorf("1.%d: got %v s with less power, %v", content, power, known)
		}
	}
}

// A sum that was reset has no growth: the average counts, and says so.
func TestBusyTimeAfterReset(t *testing.T) {
	root := machine(t, nil)
	g := &state{card: list(root)[0]}
	for i, ms := range []uint64{5000, 6000, 20} {
		fixture.Write(t, root, device+"gpu_metrics", at(6, ms, .4))
		r := g.card.read(request{})
		r.at.Mono = time.Duration(i+1) * time.Second
		g.apply(&r)
	}
	if got := g.busy - g.busyBefore; !g.averaged || got != 700*time.Millisecond {
		t.Errorf("got %v, averaged %v, want 700ms and true", got, g.averaged)
	}
}

// collector keeps what a source emits.
type collector struct {
	mu   sync.Mutex
	last sample.Sample
	rows int
	errs []string
	new  chan struct{}
}

func (c *collector) sink(_ string, s *sample.Sample, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows++
	processes := c.last.GPUProcesses
	if s.GPUProcessesRead {
		processes = slices.Clone(s.GPUProcesses)
	}
	c.last = sample.Sample{At: s.At, GPUs: slices.Clone(s.GPUs), GPUProcesses: processes}
	if err != nil {
		c.errs = append(c.errs, err.Error())
	}
	select {
	case c.new <- struct{}{}:
	default:
	}
}

// start runs a source until the test ends.
func start(t *testing.T, root string) (*Source, *collector) {
	t.Helper()
	s := New(Options{Root: root, Interval: 100 * time.Millisecond})
	c := &collector{new: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx, c.sink)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return s, c
}

// until waits until a condition of the newest row holds.
func (c *collector) until(t *testing.T, what string, is func(sample.Sample, []string) bool) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		c.mu.Lock()
		ok := is(c.last, c.errs)
		last := fmt.Sprintf("%+v, %v", c.last.GPUs, c.errs)
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-c.new:
		case <-late:
			t.Fatalf("%s: got %s", what, last)
		}
	}
}

func status(want sample.GPUStatus) func(sample.Sample, []string) bool {
	return func(s sample.Sample, _ []string) bool { return len(s.GPUs) == 1 && s.GPUs[0].Status == want }
}

func TestRun(t *testing.T) {
	root := machine(t, map[string]string{
		device + "gpu_metrics":                            string(at(6, 1000, .4)),
		"sys/class/kfd/kfd/topology/nodes/1/gpu_id":       "51234\n",
		"sys/class/kfd/kfd/topology/nodes/1/properties":   "cpu_cores_count 0\nlocation_id 768\ndomain 0\n",
		"sys/class/kfd/kfd/proc/4711/vram_51234":          "5000\n",
		"sys/class/kfd/kfd/proc/4712/vram_51234":          "0\n",
		"sys/class/kfd/kfd/proc/4711/sdma_51234":          "1\n",
		"sys/class/kfd/kfd/proc/not-a-process/vram_51234": "1\n",
	})
	s, c := start(t, root)
	c.until(t, "a card", func(s sample.Sample, _ []string) bool {
		return len(s.GPUs) == 1 && s.GPUs[0].ID == id && s.GPUs[0].Vendor == "AMD" && s.GPUs[0].Driver == "6.12.0" &&
			s.GPUs[0].Temperature == 65 && len(s.GPUProcesses) == 1 &&
			s.GPUProcesses[0] == sample.GPUProcess{GPU: id, PID: 4711, Memory: 5000, Has: true}
	})
	if err := s.Release(t.Context(), time.Hour); err != nil {
		t.Error(err)
	}
	c.until(t, "released", status(sample.GPUReleased))
	if err := s.Release(t.Context(), 0); err != nil {
		t.Error(err)
	}
	c.until(t, "read again", status(sample.GPUWorks))
	fixture.Write(t, root, device+"power/runtime_status", []byte("suspended\n"))
	s.CatchUp(t.Context())
	c.until(t, "asleep", status(sample.GPUAsleep))
}

// A card whose files hang is hung, and is read again once they return. The program goes on.
func TestHang(t *testing.T) {
	root := machine(t, nil)
	pipe := filepath.Join(root, device, "gpu_metrics")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s, c := start(t, root)
	c.until(t, "hung", status(sample.GPUHung))
	c.until(t, "a report", func(_ sample.Sample, errs []string) bool {
		return slices.ContainsFunc(errs, func(e string) bool { return strings.Contains(e, "hangs") })
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Release(ctx, time.Hour); !errors.Is(err, errNotClosed) {
		t.Errorf("got %v, want %v", err, errNotClosed)
	}
	if err := s.Release(ctx, 0); err != nil {
		t.Error(err)
	}
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // the read ends with this
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(pipe); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	c.until(t, "read again", status(sample.GPUWorks))
}

func TestRests(t *testing.T) {
	root := machine(t, map[string]string{device + "power/control": "auto\n"})
	g := &state{card: list(root)[0], used: time.Second}
	set := func(status string) { fixture.Write(t, root, device+"power/runtime_status", []byte(status)) }
	now := 2 * time.Second
	for i, step := range []struct {
		after time.Duration
		used  bool
		power string
		rests bool
	}{
		{0, false, "active", false}, {restAfter, false, "active", true}, {time.Second, true, "active", false},
		{time.Second, false, "suspended", true}, {restAfter, false, "suspended", true},
		{time.Second, false, "active", false}, {restAfter, false, "active", true}, {0, true, "suspended", true},
	} {
		now += step.after
		set(step.power)
		if got := g.rests(step.used, now); got != step.rests {
			t.Errorf("step %d: got %v, want %v", i, got, step.rests)
		}
	}
}

// Open files show who computes without the driver's list, and in another PID namespace.
func TestSearch(t *testing.T) {
	root := machine(t, nil)
	process := func(pid, file, info string) {
		folder := filepath.Join(root, "proc", pid)
		fixture.Write(t, root, "proc/"+pid+"/fdinfo/7", []byte(info))
		if err := os.MkdirAll(folder+"/fd", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(file, folder+"/fd/7"); err != nil {
			t.Fatal(err)
		}
	}
	const of = "drm-driver:\tamdgpu\ndrm-client-id:\t9\ndrm-pdev:\t0000:03:00.0\ndrm-memory-vram:\t3 KiB\n"
	process("10", "/dev/dri/renderD128", of+"drm-engine-compute:\t77 ns\n")
	process("11", "/dev/dri/renderD128", of+"drm-engine-gfx:\t77 ns\n")
	process("12", "/dev/dri/renderD128", strings.Replace(of, "amdgpu", "i915", 1)+"drm-engine-compute:\t77 ns\n")
	process("13", "/tmp/x", of+"drm-engine-compute:\t77 ns\n")
	process("14", "/dev/dri/renderD128", of+"drm-engine-compute:\t0 ns\n")
	if err := os.Symlink("/dev/kfd", filepath.Join(root, "proc/14/fd/8")); err != nil {
		t.Fatal(err)
	}
	cards := map[string]string{"0000:03:00.0": id}
	alone := sample.GPUProcess{GPU: id, PID: 10, Memory: 3 << 10, Has: true}
	f := found{}.again(root, cards, true)
	if got := f.all(); !slices.Equal(got, []sample.GPUProcess{alone}) {
		t.Errorf("got %+v", got)
	}
	if err := os.MkdirAll(filepath.Join(root, "proc/self/ns"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pid:[4026532999]", filepath.Join(root, "proc/self/ns/pid")); err != nil {
		t.Fatal(err)
	}
	f = f.again(root, cards, true)
	if got := f.all(); !slices.Equal(got, []sample.GPUProcess{alone, {GPU: id, PID: 14}}) {
		t.Errorf("another namespace: got %+v", got)
	}
}

func TestReads(t *testing.T) {
	root := machine(t, nil)
	if !Reads(root, "") || Reads(root, "/lib/libnvidia-ml.so.1") || Reads(t.TempDir(), "") {
		t.Error("got another driver, want amdgpu where it is alone")
	}
	fixture.Write(t, root, "sys/bus/pci/devices/0000:09:00.0/vendor", []byte("0x10de\n"))
	fixture.Write(t, root, "sys/bus/pci/devices/0000:09:00.0/class", []byte("0x020000\n")) // of the network
	if !Reads(root, "") {
		t.Error("with a network card: got no amdgpu")
	}
	fixture.Write(t, root, "sys/bus/pci/devices/0000:09:00.0/class", []byte("0x030200\n"))
	if Reads(root, "") {
		t.Error("with another GPU without a driver: got amdgpu, want NVIDIA's")
	}
	root = machine(t, nil)
	fixture.Write(t, root, "proc/driver/nvidia/version", nil)
	if Reads(root, "") {
		t.Error("with NVIDIA's driver: got amdgpu, want NVIDIA's")
	}
}

func TestProbe(t *testing.T) {
	for _, c := range []struct {
		table []byte
		says  string
		err   string
	}{
		{at(8, 1, 0), "was not verified on a card", ""}, {at(0, 1, 0), "an average at each second", ""},
		{[]byte{120, 0, 2, 3}, "gpu_metrics 2.3 is not read", ""}, {[]byte{120, 0, 1, 9}, "gpu_metrics 1.9 is not known: update this program; meanwhile", ""},
	} {
		root := machine(t, map[string]string{device + "gpu_metrics": string(c.table)})
		got := Probe(t.Context(), Options{Root: root})
		if len(got) != 1 || !got[0].Busy || !strings.Contains(strings.Join(got[0].Notes, " "), c.says) ||
			!strings.Contains(fmt.Sprint(got[0].Err), c.err) || (got[0].Err != nil) != (c.err != "") {
			t.Errorf("got %+v, want %q, %q", got, c.says, c.err)
		}
	}
	root := machine(t, map[string]string{device + "power/runtime_status": "suspended\n"})
	asleep := Probe(t.Context(), Options{Root: root})
	if len(asleep) != 1 || !asleep[0].Asleep || asleep[0].Supported != nil {
		t.Errorf("asleep: got %+v", asleep)
	}
}
