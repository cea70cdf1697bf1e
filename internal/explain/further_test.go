package explain

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/window"
)

func means(values map[history.Detail]float64) (m history.Means) {
	for d, v := range values {
		m.Set(d, v)
	}
	return m
}

func TestFurtherFindings(t *testing.T) {
	const mib = 1 << 20
	limits := history.GPULimits{Power: 700, SlowdownAt: 90, Clock: 1980e6, Memory: 80 << 30}
	limited := window.GPUUse{ID: "GPU-1", Limits: limits,
		Means: means(map[history.Detail]float64{history.Temperature: 88, history.SMClock: 1410e6})}
	bare := window.GPUUse{ID: "GPU-1"}
	second := window.GPUUse{ID: "GPU-2", Limits: history.GPULimits{Index: 2, Memory: 24 << 30}}
	slice := window.GPUUse{ID: "MIG-c", Limits: history.GPULimits{Index: 2, Memory: 13 << 29}}
	for i, c := range []struct {
		finding      window.Finding
		gpus         int
		text, remedy string
	}{
		{window.IdleTensorCores{GPUs: 1, Busy: 0.95, Tensor: 0.11}, 1,
			"The GPU was busy 95 % of the time, but its tensor cores only 11 %: it computes in types or shapes that tensor cores do not support.", "bf16"},
		{window.IdleTensorCores{GPUs: 1, Tensor: 0.02, DRAM: 0.5, MemoryBound: true, SmallKernels: true}, 1,
			"tensor cores only 2 %; memory was at 50 % of its bandwidth, and is the limit.", "fewer bytes"},
		{window.IdleTensorCores{GPUs: 1, Tensor: 0.02, SM: 0.5, SmallKernels: true}, 1,
			"tensor cores only 2 %, and its SMs 50 %: the kernels are too small to fill it.", "more work at a time"},
		{window.IdleTensorCores{GPUs: 2, Busy: 0.95, Tensor: 0.05}, 2,
			"The 2 GPUs were busy 95 % of the time, but their tensor cores only 5 %", "bf16"},
		{window.Throttling{GPU: &limited, Cause: history.ThrottledThermal, Share: 0.34}, 1,
			"The GPU held its clocks down for 34 % of the time because it was too hot: 88 C on average, and it slows down at 90 C.", "cooling"},
		{window.Throttling{GPU: &bare, Cause: history.ThrottledThermal, Share: 0.05}, 1, "5 % of the time because it was too hot.", "cooling"},
		{window.Throttling{GPU: &limited, Cause: history.ThrottledHWThermal, Share: 0.2}, 1, "for its own protection", "cooling"},
		{window.Throttling{GPU: &limited, Cause: history.ThrottledPowerBrake, Share: 0.2}, 1, "power supply", "power supplies"},
		{window.Throttling{GPU: &limited, Cause: history.ThrottledSyncBoost, Share: 0.2}, 1, "another GPU", "slowest"},
		{window.Throttling{GPU: &limited, Cause: history.ThrottledBoard, Share: 0.2}, 1, "board", "cables"},
		{window.Throttling{GPU: &limited, Cause: history.ThrottledPower, Share: 0.8}, 1,
			"The GPU held its clocks down for 80 % of the time to stay below its power cap of 700 W: its SMs ran at 1410 MHz on average, and have run at 1980 MHz.", "cap"},
		{window.Throttling{GPU: &window.GPUUse{Limits: limits}, Cause: history.ThrottledPower, Share: 0.5}, 1, "power cap of 700 W.", "cap"},
		{window.Throttling{GPU: &second, Cause: history.ThrottledThermal, Share: 0.5}, 2, "GPU 2 held its clocks down for 50 %", "cooling"},
		{window.Overheating{GPU: &limited, FirstTemperature: 64, LastTemperature: 88, FirstPower: 412.6, LastPower: 488}, 1,
			"The GPU went from 64 to 88 C and from 413 to 488 W, and did no more work; it slows down at 90 C.", "cooling"},
		{window.MemoryGrowth{GPU: &limited, PerEpoch: 310 * mib, Epochs: 4, EpochsLeft: 258.1}, 1,
			"GPU memory grew by 310 MiB an epoch over 4 epochs and reaches its limit of 80 GiB in about 258 epochs.", "detach"},
		{window.MemoryGrowth{GPU: &second, PerEpoch: 1 << 30, Epochs: 5, EpochsLeft: 19}, 2,
			"Memory of GPU 2 grew by 1 GiB an epoch over 5 epochs and reaches its limit of 24 GiB in about 19 epochs.", "detach"},
		{window.MemoryGrowth{GPU: &slice, PerEpoch: 1 << 30, Epochs: 6, EpochsLeft: 0.5}, 2,
			"Memory of MIG-c grew by 1 GiB an epoch over 6 epochs and reaches its limit of 6.5 GiB in the next one.", "detach"},
		{window.MemoryGrowth{GPU: &bare, PerEpoch: mib, Epochs: 6}, 1, "GPU memory grew by 1 MiB an epoch over 6 epochs.", "detach"},
		{window.FailingDisk{Text: "sda has 312 reallocated sectors.", Remedy: "Replace sda."}, 1, "sda has 312 reallocated sectors.", "Replace sda."},
	} {
		r := &window.Report{Facts: window.Facts{GPUIDs: []string{"GPU-1", "GPU-2"}[:c.gpus]}, Further: window.Further{Findings: []window.Finding{c.finding}}}
		got := FurtherFindings(r)
		if len(got) != 1 || got[0].Kind != c.finding.Kind() || !strings.Contains(got[0].Text, c.text) ||
			!strings.Contains(got[0].Remedy, c.remedy) {
			t.Errorf("%d: %+v, want %q and %q", i, got, c.text, c.remedy)
		}
	}
}

// TestFindingsInJSON: the JSON has what the GPUs report, as in docs/report.md, and nothing else.
func TestFindingsInJSON(t *testing.T) {
	r := &window.Report{Ledger: window.Ledger{Split: true}, Facts: window.Facts{GPUIDs: []string{"GPU-1", "GPU-2"}, Uses: []window.GPUUse{
		{ID: "GPU-1", Busy: 0.95, Means: means(map[history.Detail]float64{
			history.SMActive: 0.5, history.TensorActive: 0.125, history.ThrottledHWThermal: 0.25,
			history.MemoryUsed: 1 << 30})},
		{ID: "GPU-2", Busy: 1, Means: means(map[history.Detail]float64{
			history.SMOccupancy: 0.5, history.DRAMActive: 0.75, history.SMClock: 1e9, history.Temperature: 60,
			history.Power: 100})},
	}}, Further: window.Further{Findings: []window.Finding{window.FailingDisk{Text: "One.", Remedy: "Two."}}}}
	line, err := json.Marshal(NewReport(r))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"findings":[{"kind":"disk_failing","text":"One.","remedy":"Two."}]`,
		`"devices":[{"id":"GPU-1","busy_ratio":0.95,"sm_active":0.5,"tensor_active":0.125,"memory_used_bytes":1073741824,"throttled":{"hw_thermal":0.25}},` +
			`{"id":"GPU-2","busy_ratio":1,"sm_occupancy":0.5,"dram_active":0.75,"sm_clock_hz":1000000000,"temperature_celsius":60,"power_watts":100}]`,
	} {
		if !strings.Contains(string(line), part) {
			t.Errorf("%s lacks %s", line, part)
		}
	}
	page, err := os.ReadFile("../../docs/report.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []window.FindingKind{window.TensorIdle, window.Throttled, window.Heating, window.MemoryGrows,
		window.FirstBatchLate} {
		if !strings.Contains(string(page), "`"+string(kind)+"`") {
			t.Errorf("docs/report.md lacks %s", kind)
		}
	}
}
