//go:build linux && cgo

package gpu

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// details returns the details of one GPU so far.
func (k *recorder) details(id string) (list []sample.GPUDetail) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, row := range k.rows {
		for _, d := range row.GPUDetails {
			if d.GPU == id {
				list = append(list, d)
			}
		}
	}
	return list
}

func (k *recorder) lastStats() (newest *sample.DriverUse) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, row := range k.rows {
		if row.DriverUse != nil {
			newest = row.DriverUse
		}
	}
	return newest
}

const distinctValues = `gpu 0 uuid=GPU-a utilization=80 encoder=11 decoder=12 controller=13
gpu 0 uuid=GPU-a sm=71 occupancy=41 tensor=31 dram=21
gpu 0 uuid=GPU-a memory_reserved=4096 pcie_received=3e9 pcie_sent=5e8 nvlink_received=2e9 nvlink_sent=3e8
gpu 0 uuid=GPU-a clock_sm=1001 clock_memory=1002 clock_graphics=1003 clock_video=1004 power_limit=650 power=333
gpu 0 uuid=GPU-a temperature_memory=62 slowdown_at=81 shutdown_at=82 memory_slowdown_at=83 fan=45
gpu 0 uuid=GPU-a throttled_power=10 throttled_thermal=20 throttled_hw_thermal=30 throttled_power_brake=40
gpu 0 uuid=GPU-a throttled_sync_boost=50
gpu 0 uuid=GPU-a throttled_board=60 throttled_reliability=70 errors_corrected=7 errors_uncorrected=3 pcie_replays=9
gpu 0 uuid=GPU-a rows_remapped=5 pages_retired=3 repair_pending=1 repair_failed=1
`

// Every value is read through the library as it was played.
func TestAllDetails(t *testing.T) {
	measured(t, func() string { return strings.Join(playedDetails(t), "; ") })
}

// playedDetails returns which rates differ from those that were played.
func playedDetails(t *testing.T) (problems []string) {
	t.Helper()
	playText(t, distinctValues)
	_, k, stop := runFake(t)
	until(t, "details", func() bool { return len(k.details("GPU-a")) >= 5 })
	stop()
	k.check(t)
	if k.errs != nil {
		t.Errorf("got errors %v, want none", k.errs)
	}
	list := k.details("GPU-a")
	first, last := list[1], list[len(list)-1]
	for q, want := range map[sample.GPUQuantity]float64{
		sample.GPUEncoder: 0.11, sample.GPUDecoder: 0.12, sample.GPUController: 0.13, sample.GPUMemoryReserved: 4096,
		sample.GPUPowerLimit: 650, sample.GPUTemperatureMemory: 62, sample.GPUSlowdownAt: 81, sample.GPUShutdownAt: 82,
		sample.GPUMemorySlowdownAt: 83, sample.GPUFan: 0.45, sample.GPUClockSM: 1001e6, sample.GPUClockMemory: 1002e6,
		sample.GPUClockGraphics: 1003e6, sample.GPUClockVideo: 1004e6, sample.GPUErrorsCorrected: 7,
		sample.GPUErrorsUncorrected: 3, sample.GPUPCIeReplays: 9, sample.GPURowsRemapped: 5, sample.GPUPagesRetired: 3,
		sample.GPURepairPending: 1, sample.GPURepairFailed: 1} {
		if got := value(t, last, q); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%v: got %v, want %v", q, got, want)
		}
	}
	for q, want := range map[sample.GPUQuantity]float64{sample.GPUSMActive: 0.71, sample.GPUSMOccupancy: 0.41,
		sample.GPUTensorActive: 0.31, sample.GPUDRAMActive: 0.21} {
		if got := value(t, last, q); math.Abs(got-want) > 0.02 {
			problems = append(problems, fmt.Sprintf("%v: %v, want %v", q, got, want))
		}
	}
	seconds := (last.At - first.At).Seconds()
	for q, want := range map[sample.GPUQuantity]float64{
		sample.GPUPCIeReceived: 3e9, sample.GPUPCIeSent: 5e8, sample.GPUNVLinkReceived: 2e9, sample.GPUNVLinkSent: 3e8,
		sample.GPUThrottledPower: 0.1, sample.GPUThrottledThermal: 0.2, sample.GPUThrottledHWThermal: 0.3,
		sample.GPUThrottledPowerBrake: 0.4, sample.GPUThrottledSyncBoost: 0.5, sample.GPUThrottledBoard: 0.6,
		sample.GPUThrottledReliability: 0.7} {
		grew := value(t, last, q) - value(t, first, q)
		if math.Abs(grew/seconds-want) > 0.05*want { // the fake library sums up every 10 ms
			problems = append(problems, fmt.Sprintf("%v: growth %v a second, want %v", q, grew/seconds, want))
		}
	}
	stats := k.lastStats()
	field := func(c sample.DriverCall) bool { return c.Name == "nvmlDeviceGetFieldValues" }
	i := slices.IndexFunc(stats.Calls, field)
	if i < 0 || stats.Calls[i].Count < 4 || int(stats.Calls[i].Count) > most(list) || stats.Calls[i].Time <= 0 {
		t.Errorf("got calls %+v, want 4 to %d of nvmlDeviceGetFieldValues", stats.Calls, most(list))
	}
	if stats.Sessions != 1 || stats.Dropped != 0 {
		t.Errorf("got %d sessions and %d dropped values, want 1 and 0", stats.Sessions, stats.Dropped)
	}
	received := func(c sample.DriverCall) bool { return c.Name == "NVML_FI_DEV_PCIE_COUNT_RX_BYTES" }
	if i := slices.IndexFunc(stats.Fields, received); i < 0 || stats.Fields[i].Time <= 0 {
		t.Errorf("got fields %+v, want a latency of NVML_FI_DEV_PCIE_COUNT_RX_BYTES", stats.Fields)
	}
	for name, want := range map[string][2]uint64{ // in five seconds
		"NVML_FI_DEV_POWER_AVERAGE": {1, 1}, energyField: {1, 2}, "NVML_FI_DEV_MEMORY_TEMP": {4, uint64(most(list))},
		hwThermalField: {4, uint64(most(list))}, // the driver gives the reason
	} {
		i := slices.IndexFunc(stats.Fields, func(c sample.DriverCall) bool { return c.Name == name })
		if i < 0 || stats.Fields[i].Count < want[0] || stats.Fields[i].Count > want[1] {
			t.Errorf("%s: got %+v, want %v readings", name, stats.Fields, want)
		}
	}
	throughput := func(c sample.DriverCall) bool { return c.Name == "nvmlDeviceGetPcieThroughput" }
	if slices.ContainsFunc(stats.Calls, throughput) {
		t.Error("got a call of nvmlDeviceGetPcieThroughput, which takes 20 ms, want none")
	}
	return problems
}

// most is how many readings a driver of so many details may have counted.
func most(list []sample.GPUDetail) int { return 2*len(list) - 1 }

// A GPU whose power is no mean, and is not throttled: energy is read each second, the slow counters of throttle time
// are not.
func TestPowerWithoutMean(t *testing.T) {
	playText(t, "gpu 0 uuid=GPU-a power=300\nerror field=185 code=3\nerror call=nvmlDeviceGetPowerUsage code=999\n")
	_, k, stop := runFake(t)
	until(t, "details", func() bool { return len(k.details("GPU-a")) >= 5 && k.lastStats() != nil })
	stop()
	row, _ := k.last()
	if g := row.GPUs[0]; g.Has&sample.HasPower == 0 || math.Abs(g.Power-300) > 60 {
		t.Errorf("got %v W, want 300 from energy", g.Power)
	}
	stats := k.lastStats()
	for name, want := range map[string][2]uint64{energyField: {4, 10}, hwThermalField: {1, 2}} {
		i := slices.IndexFunc(stats.Fields, func(c sample.DriverCall) bool { return c.Name == name })
		if i < 0 || stats.Fields[i].Count < want[0] || stats.Fields[i].Count > want[1] {
			t.Errorf("%s: got %+v, want %v readings", name, stats.Fields, want)
		}
	}
}

// The PCIe counter wraps 32 bits several times between two readings.
func TestFastPCIeLink(t *testing.T) {
	measured(t, func() (problem string) {
		playText(t, "gpu 0 uuid=GPU-a pcie_received=26e9\n")
		_, k, stop := runFake(t)
		until(t, "details", func() bool { return len(k.details("GPU-a")) >= 6 })
		stop()
		list := k.details("GPU-a")
		first, last := list[2], list[len(list)-1]
		grew := value(t, last, sample.GPUPCIeReceived) - value(t, first, sample.GPUPCIeReceived)
		if rate := grew / (last.At - first.At).Seconds(); math.Abs(rate-26e9) > 1e9 {
			problem = fmt.Sprintf("%v bytes a second, want 26e9", rate)
		}
		return problem
	})
}

func TestXIDEvents(t *testing.T) {
	w := playText(t, "gpu 0 uuid=GPU-a xids=13:5\ngpu 1 uuid=GPU-b\n")
	_, k, stop := runFake(t)
	until(t, "details", func() bool { return len(k.details("GPU-a")) >= 2 })
	w.Write("gpu 0 uuid=GPU-a xids=13:7,31:1\ngpu 1 uuid=GPU-b xids=79:1\nlost 1\n")
	newest := func(id string) []sample.XID { list := k.details(id); return list[len(list)-1].XIDs }
	a, b := []sample.XID{{Code: 13, Count: 2}, {Code: 31, Count: 1}}, []sample.XID{{Code: 79, Count: 1}}
	until(t, "the XIDs since the start", func() bool {
		return slices.Equal(newest("GPU-a"), a) && slices.Equal(newest("GPU-b"), b)
	})
	w.Write("gpu 0 uuid=GPU-a xids=13:7,31:1\ngpu 1 uuid=GPU-b xids=79:1\n")
	until(t, "it returns", func() bool {
		row, _ := k.last()
		return row.GPUs[1].Status == sample.GPUWorks
	})
	w.Write("gpu 0 uuid=GPU-a xids=13:8,31:1\ngpu 1 uuid=GPU-b xids=79:1,48:1\n")
	a[0].Count = 3
	b = []sample.XID{{Code: 48, Count: 1}, {Code: 79, Count: 1}}
	until(t, "XIDs of both", func() bool { return slices.Equal(newest("GPU-a"), a) && slices.Equal(newest("GPU-b"), b) })
	stop()
	k.check(t)
}

func TestGarbageDetails(t *testing.T) {
	w := playText(t, "gpu 0 uuid=GPU-a pages_retired=none\n")
	_, k, stop := runFake(t)
	until(t, "details", func() bool { return len(k.details("GPU-a")) >= 3 })
	w.Write("gpu 0 uuid=GPU-a pages_retired=none\ngarbage 0\n")
	count := 0
	until(t, "garbage is dropped", func() bool {
		list := k.details("GPU-a")
		count = 0
		for range list[len(list)-1].Values.All() {
			count++
		}
		return count <= 14 // values of constants and rotating queries stay
	})
	dropped := k.lastStats().Dropped
	w.Write("gpu 0 uuid=GPU-a pages_retired=none\n")
	until(t, "valid values again", func() bool {
		list := k.details("GPU-a")
		_, ok := list[len(list)-1].Values.Get(sample.GPUTensorActive)
		return ok
	})
	stop()
	if dropped < 15 {
		t.Errorf("got %d dropped values, want at least 15", dropped)
	}
}

func TestMIG(t *testing.T) {
	w := playText(t, "gpu 0 uuid=GPU-a\nmig 0 uuid=MIG-a utilization=60 processes=7:99\nmig 0 uuid=MIG-b utilization=20\n")
	_, k, stop := runFake(t)
	until(t, "details", func() bool { return len(k.details("MIG-b")) >= 3 })
	row, _ := k.last()
	if len(row.GPUs) != 3 || row.GPUs[0].Parent != "" || row.GPUs[1].Parent != "GPU-a" || row.GPUs[2].Parent != "GPU-a" ||
		row.GPUs[1].MemoryTotal != 10<<30 || row.GPUs[1].Has&sample.LacksBusy == 0 {
		t.Errorf("got %+v, want a GPU and two MIG devices of it without utilization", row.GPUs)
	}
	for id, want := range map[string]float64{"MIG-a": 0.6, "MIG-b": 0.2} {
		list := k.details(id)
		if got := value(t, list[len(list)-1], sample.GPUSMActive); math.Abs(got-want) > 0.05 {
			t.Errorf("%s: got SM activity %v, want %v", id, got, want)
		}
	}
	onMIG := func(p sample.GPUProcess) bool { return p.GPU == "MIG-a" && p.PID == 7 }
	if !slices.ContainsFunc(k.rows[0].GPUProcesses, onMIG) {
		t.Errorf("got processes %+v, want 7 on MIG-a", k.rows[0].GPUProcesses)
	}
	w.Write("gpu 0 uuid=GPU-a\nmig 0 uuid=MIG-c\n")
	until(t, "another MIG device", func() bool {
		row, _ := k.last()
		return len(row.GPUs) == 2 && row.GPUs[1].ID == "MIG-c" && row.GPUs[1].Status == sample.GPUWorks
	})
	w.Write("gpu 0 uuid=GPU-a xids=13:1\n")
	until(t, "the GPU without MIG, with utilization", func() bool {
		row, _ := k.last()
		list := k.details("GPU-a")
		return len(row.GPUs) == 1 && row.GPUs[0].Has&sample.LacksBusy == 0 && row.GPUs[0].Busy > 0 &&
			len(list[len(list)-1].XIDs) == 1
	})
	stop()
	for _, row := range k.rows {
		if slices.ContainsFunc(row.GPUs, func(g sample.GPU) bool { return g.Status != sample.GPUWorks }) {
			t.Fatalf("got %+v, want no lost MIG device", row.GPUs)
		}
	}
	if k.errs != nil {
		t.Errorf("got errors %v, want none", k.errs)
	}
}

func TestHangingDetail(t *testing.T) {
	w := playText(t, "gpu 0 uuid=GPU-a\ngpu 1 uuid=GPU-b\nhang gpu=1 call=nvmlGpmSampleGet\n")
	_, k, stop := runFake(t)
	until(t, "GPU 1 hangs", func() bool {
		row, ok := k.last()
		return ok && row.GPUs[1].Status == sample.GPUHung && len(k.details("GPU-a")) >= 3
	})
	if !strings.Contains(k.errorText(), "has not responded to nvmlGpmSampleGet for 1s") {
		t.Errorf("got errors %s, want a hang in nvmlGpmSampleGet", k.errorText())
	}
	w.Write("gpu 0 uuid=GPU-a\ngpu 1 uuid=GPU-b\nhang call=nvmlEventSetWait_v2 seconds=3\n")
	until(t, "GPU 1 works", func() bool { row, _ := k.last(); return row.GPUs[1].Status == sample.GPUWorks })
	until(t, "XID events hang", func() bool { return strings.Contains(k.errorText(), "nvmlEventSetWait") })
	before := len(k.details("GPU-b"))
	until(t, "details during the hang", func() bool { return len(k.details("GPU-b")) >= before+3 })
	w.Write("gpu 0 uuid=GPU-a\ngpu 1 uuid=GPU-b xids=13:1\n")
	until(t, "XID events again", func() bool {
		list := k.details("GPU-b")
		return len(list[len(list)-1].XIDs) == 1
	})
	stop()
	k.check(t)
}

func TestDriverRestart(t *testing.T) {
	w := playText(t, "gpu 0 uuid=GPU-a xids=13:1\n")
	_, k, stop := runFake(t)
	until(t, "details", func() bool { return len(k.details("GPU-a")) >= 2 })
	w.Write("gpu 0 uuid=GPU-a xids=13:2\ninit_error 9\n")
	until(t, "nothing is known of the GPU", func() bool {
		row, _ := k.last()
		return row.GPUs[0].Status == sample.GPUUnknown
	})
	w.Write("gpu 0 uuid=GPU-a xids=13:2\n")
	until(t, "the GPU works", func() bool { row, _ := k.last(); return row.GPUs[0].Status == sample.GPUWorks })
	time.Sleep(1500 * time.Millisecond)
	w.Write("gpu 0 uuid=GPU-a xids=13:3\n")
	until(t, "its XIDs", func() bool {
		list := k.details("GPU-a")
		x := list[len(list)-1].XIDs
		return len(x) == 1 && x[0].Count >= 1
	})
	stop()
	if stats := k.lastStats(); stats.Sessions != 2 {
		t.Errorf("got %d sessions, want 2", stats.Sessions)
	}
	k.check(t)
}
