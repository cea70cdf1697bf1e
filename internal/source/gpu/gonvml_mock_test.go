//go:build linux && cgo

package gpu

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxb200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/stallspan/stallspan/internal/sample"
)

// mocked returns a library on one of go-nvml's mock machines, which has the functions with these names only.
func mocked(machine *server.Server, names ...string) *library {
	names = append(names,
		"nvmlInit_v2", "nvmlShutdown", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetUUID",
		"nvmlDeviceGetName", "nvmlDeviceGetMemoryInfo", "nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion",
		"nvmlDeviceGetMigMode")
	return &library{Interface: &machine.Interface, lookup: func(name string) error {
		if slices.Contains(names, name) {
			return nil
		}
		return errors.New("undefined symbol")
	}}
}

func TestProbeMockedMachines(t *testing.T) {
	for name, machine := range map[string]*server.Server{
		"A100": dgxa100.New(), "H100": dgxh100.New(), "H200": dgxh200.New(), "B200": dgxb200.New(),
	} {
		found, err := probe(t.Context(), mocked(machine), nil)
		if err != nil || found.Err != nil || len(found.Devices) != 8 || found.Driver == "" || found.NVML == "" {
			t.Fatalf("%s: got %+v, %v, want 8 devices", name, found, err)
		}
		for i, d := range found.Devices {
			if d.Index != i || !strings.Contains(d.Name, name) || !strings.HasPrefix(d.ID, "GPU-") || d.Err != nil ||
				!slices.Equal(d.Supported, []string{"memory"}) || len(d.Unsupported) != len(features(nvidia))-1 {
				t.Errorf("%s: got %+v, want device %d with memory only", name, d, i)
			}
		}
	}
}

// Each field value has a result of its own, and one call finds out that a GPU does not support GPM.
func TestFieldValues(t *testing.T) {
	machine := dgxh200.New()
	l := mocked(machine, "nvmlDeviceGetFieldValues", "nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc",
		"nvmlGpmSampleFree",
		"nvmlGpmSampleGet", "nvmlGpmMetricsGet")
	calls, queries := 0, 0
	for _, d := range machine.Devices {
		m := &d.(*server.Device).Device
		m.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
			calls++
			for i := range values {
				v := &values[i]
				v.LatencyUsec = 7
				switch v.FieldId {
				case nvml.FI_DEV_MEMORY_TEMP:
					v.ValueType, v.Value = uint32(nvml.VALUE_TYPE_UNSIGNED_INT), [8]byte{63}
				case nvml.FI_DEV_PERF_POLICY_POWER:
					v.ValueType, v.Value = uint32(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG), [8]byte{0, 0, 0, 0, 1}
				case nvml.FI_DEV_PCIE_COUNT_RX_BYTES:
					v.NvmlReturn = uint32(nvml.ERROR_UNKNOWN)
				default:
					v.NvmlReturn = uint32(nvml.ERROR_NOT_SUPPORTED)
				}
			}
			return nvml.SUCCESS
		}
		m.GpmQueryDeviceSupportFunc = func() (nvml.GpmSupport, nvml.Return) {
			queries++
			return nvml.GpmSupport{}, nvml.SUCCESS
		}
	}
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	devices, err := l.list(0)
	if err != nil {
		t.Fatal(err)
	}
	a := newDeviceReader(devices[0])
	fields := func(d *deviceReader) (n int) {
		for i, p := range rows {
			if p.call == callFields && !d.unsupported[i] {
				n++
			}
		}
		return n
	}
	for range 3 {
		r := a.read(l, request{gauges: true})
		hot, _ := r.detail.Get(sample.GPUTemperatureMemory)
		throttled, _ := r.detail.Get(sample.GPUThrottledPower)
		if hot != 63 || throttled != float64(1<<32)/1e9 || fields(a) != 3 || len(r.problems) != 1 ||
			!strings.Contains(r.problems[0].Error(), "NVML_FI_DEV_PCIE_COUNT_RX_BYTES") {
			t.Errorf("got temperature %v, throttle time %v, %d fields, problems %v, want 63, 4.29, 3, one of RX_BYTES",
				hot, throttled, fields(a), r.problems)
		}
	}
	if calls != 3 || queries != 1 || l.stats().fields[0].Count != 3 || l.stats().fields[0].Longest != 7000 {
		t.Errorf("got %d calls, %d GPM queries, fields %+v, want 3, 1, 3 calls of 7 us", calls, queries, l.stats().fields)
	}
}

// An event belongs to the GPU with its handle, which may be lost.
func TestXIDEventHandles(t *testing.T) {
	machine := dgxh100.New()
	l := mocked(machine, "nvmlDeviceGetSupportedEventTypes", "nvmlDeviceRegisterEvents", "nvmlEventSetCreate",
		"nvmlEventSetWait",
		"nvmlEventSetFree")
	pending := []nvml.EventData{
		{Device: machine.Devices[3], EventType: nvml.EventTypeXidCriticalError, EventData: 79},
		{Device: machine.Devices[2], EventType: nvml.EventTypePState, EventData: 1},
		{Device: machine.Devices[0], EventType: nvml.EventTypeXidCriticalError, EventData: 1 << 63},
	}
	freed := 0
	set := &mock.EventSet{
		WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
			if len(pending) == 0 {
				return nvml.EventData{}, nvml.ERROR_TIMEOUT
			}
			e := pending[0]
			pending = pending[1:]
			return e, nvml.SUCCESS
		},
		FreeFunc: func() nvml.Return { freed++; return nvml.SUCCESS },
	}
	machine.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) { return set, nvml.SUCCESS }
	for i, d := range machine.Devices {
		m := &d.(*server.Device).Device
		m.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) {
			if i == 7 {
				return nvml.EventTypePState, nvml.SUCCESS
			}
			return nvml.EventTypeXidCriticalError | nvml.EventTypePState, nvml.SUCCESS
		}
		m.RegisterEventsFunc = func(types uint64, _ nvml.EventSet) nvml.Return {
			if types != nvml.EventTypeXidCriticalError {
				t.Errorf("got registration for event types %d, want XIDs only", types)
			}
			return nvml.SUCCESS
		}
	}
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	if list, err := l.events(); list != nil || err != nil {
		t.Errorf("before any registration: got %v, %v, want no events", list, err)
	}
	var devices []device
	for i := range machine.Devices {
		list, _ := l.list(i)
		devices = append(devices, list...)
	}
	for i, d := range devices {
		if err := d.read(callEvents, nil); errors.Is(err, codeNotSupported) != (i == 7) {
			t.Errorf("GPU %d: got error %v, want not supported: %v", i, err, i == 7)
		}
	}
	machine.Devices[3].(*server.Device).GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_GPU_IS_LOST }
	list, err := l.events()
	want := []xidEvent{{devices[3].about().id, 79}, {devices[0].about().id, maxXID + 1}}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("got %v, %v, want %v", list, err, want)
	}
	l.close()
	if freed != 1 {
		t.Errorf("got the event set freed %d times, want once", freed)
	}
}

// A list that is longer than the memory for it, and a name that is no text, do not end the reading.
func TestMockedGarbage(t *testing.T) {
	machine := dgxh200.New()
	l := mocked(machine, callProcesses, callPages, "nvmlDeviceGetTemperature")
	m := machine.Devices[0].(*server.Device)
	m.GetNameFunc = func() (string, nvml.Return) { return "NVIDIA \xff\x1b[31m H", nvml.SUCCESS }
	m.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 40, nvml.SUCCESS }
	machine.SystemGetDriverVersionFunc = func() (string, nvml.Return) { return "5\x9970", nvml.SUCCESS }
	if version, _ := l.versions(); version != "5?70" {
		t.Errorf("got the version %q, want 5?70", version)
	}
	longer := uint32(3)
	m.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
		return make([]nvml.ProcessInfo, 1)[:longer], nvml.SUCCESS // as go-nvml does
	}
	m.GetRetiredPagesFunc = func(nvml.PageRetirementCause) ([]uint64, nvml.Return) {
		return make([]uint64, 1)[:longer], nvml.SUCCESS
	}
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	devices, err := l.list(0)
	if err != nil || devices[0].about().name != "NVIDIA ??[31m H" {
		t.Fatalf("got %q, %v, want the name without what is no text", devices[0].about().name, err)
	}
	r := newDeviceReader(devices[0]).read(l, request{gauges: true, processes: true})
	if r.gauges.Temperature != 40 || r.failed != nil || len(r.problems) != 2 || len(r.processes) != 0 {
		t.Errorf("got %+v, want a temperature and two problems", r)
	}
}

// If the driver reports limits as margins only, they are computed from the current temperature.
func TestMockedTemperatureMargins(t *testing.T) {
	machine := dgxh200.New()
	l := mocked(machine, "nvmlDeviceGetTemperature", "nvmlDeviceGetMarginTemperature", "nvmlDeviceGetFieldValues",
		"nvmlDeviceGetTemperatureThreshold")
	m := machine.Devices[0].(*server.Device)
	m.GetTemperatureThresholdFunc = func(nvml.TemperatureThresholds) (uint32, nvml.Return) {
		return 0, nvml.ERROR_NOT_SUPPORTED
	}
	m.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) { return 40, nvml.SUCCESS }
	m.GetMarginTemperatureFunc = func() (nvml.MarginTemperature, nvml.Return) {
		return nvml.MarginTemperature{MarginTemperature: 47}, nvml.SUCCESS
	}
	m.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		for i := range values {
			v := &values[i]
			v.ValueType, v.NvmlReturn = uint32(nvml.VALUE_TYPE_SIGNED_INT), uint32(nvml.ERROR_NOT_SUPPORTED)
			margins := map[uint32]int8{nvml.FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT: -2, nvml.FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT: -5}
			if below, ok := margins[v.FieldId]; ok {
				v.NvmlReturn, v.Value = 0, [8]byte{byte(below), 0xff, 0xff, 0xff}
			}
		}
		return nvml.SUCCESS
	}
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	devices, _ := l.list(0)
	r := newDeviceReader(devices[0]).read(l, request{gauges: true})
	slowdown, _ := r.detail.Get(sample.GPUSlowdownAt)
	shutdown, _ := r.detail.Get(sample.GPUShutdownAt)
	if _, ok := r.detail.Get(sample.GPUMemorySlowdownAt); ok || slowdown != 89 || shutdown != 92 {
		t.Errorf("got limits %v and %v, of the memory: %v, want 89, 92, none", slowdown, shutdown, ok)
	}
}

// The constants are literals where NVML is not built in.
func TestNVMLConstants(t *testing.T) {
	for name, id := range map[string]uint32{
		"NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION":                    nvml.FI_DEV_TOTAL_ENERGY_CONSUMPTION,
		"NVML_FI_DEV_PCIE_COUNT_RX_BYTES":                         nvml.FI_DEV_PCIE_COUNT_RX_BYTES,
		"NVML_FI_DEV_PCIE_COUNT_TX_BYTES":                         nvml.FI_DEV_PCIE_COUNT_TX_BYTES,
		"NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX":                   nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
		"NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX":                   nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
		"NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES":                      nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES,
		"NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES":                     nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES,
		"NVML_FI_DEV_MEMORY_TEMP":                                 nvml.FI_DEV_MEMORY_TEMP,
		"NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP":            nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP,
		"NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN":       nvml.FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
		"NVML_FI_DEV_PERF_POLICY_THERMAL":                         nvml.FI_DEV_PERF_POLICY_THERMAL,
		"NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN":       nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
		"NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN": nvml.FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
		"NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST":              nvml.FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST,
		"NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT":                     nvml.FI_DEV_PERF_POLICY_BOARD_LIMIT,
		"NVML_FI_DEV_PERF_POLICY_RELIABILITY":                     nvml.FI_DEV_PERF_POLICY_RELIABILITY,
	} {
		i := slices.IndexFunc(rows, func(p row) bool { return p.name == name })
		if i < 0 || rows[i].id != id || rows[i].call != callFields {
			t.Errorf("%s: got no spec with ID %d, want one", name, id)
		}
	}
	for name, id := range map[string]nvml.GpmMetricId{"NVML_GPM_METRIC_SM_UTIL": nvml.GPM_METRIC_SM_UTIL,
		"NVML_GPM_METRIC_SM_OCCUPANCY":            nvml.GPM_METRIC_SM_OCCUPANCY,
		"NVML_GPM_METRIC_ANY_TENSOR_UTIL":         nvml.GPM_METRIC_ANY_TENSOR_UTIL,
		"NVML_GPM_METRIC_DRAM_BW_UTIL":            nvml.GPM_METRIC_DRAM_BW_UTIL,
		"NVML_GPM_METRIC_PCIE_RX_PER_SEC":         nvml.GPM_METRIC_PCIE_RX_PER_SEC,
		"NVML_GPM_METRIC_PCIE_TX_PER_SEC":         nvml.GPM_METRIC_PCIE_TX_PER_SEC,
		"NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC": nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC,
		"NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC": nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC} {
		i := slices.IndexFunc(rows, func(p row) bool { return p.name == name })
		if i < 0 || rows[i].id != uint32(id) || rows[i].call != callGPM {
			t.Errorf("%s: got no spec with ID %d, want one", name, id)
		}
	}
	for bit, want := range map[uint64]sample.GPUQuantity{nvml.ClocksEventReasonSwPowerCap: sample.GPUThrottledPower,
		nvml.ClocksEventReasonSwThermalSlowdown:       sample.GPUThrottledThermal,
		nvml.ClocksEventReasonSyncBoost:               sample.GPUThrottledSyncBoost,
		nvml.ClocksThrottleReasonHwThermalSlowdown:    sample.GPUThrottledHWThermal,
		nvml.ClocksThrottleReasonHwPowerBrakeSlowdown: sample.GPUThrottledPowerBrake,
		nvml.ClocksEventReasonBoardLimit:              sample.GPUThrottledBoard,
		nvml.ClocksEventReasonReliability:             sample.GPUThrottledReliability} {
		if reasonBits[want] != bit {
			t.Errorf("%v: got the reason %#x, want %#x", want, reasonBits[want], bit)
		}
	}
	for _, c := range []struct {
		call     string
		argument int
		quantity quantity
	}{
		{callClock, int(nvml.CLOCK_SM), sample.GPUClockSM}, {callClock, int(nvml.CLOCK_MEM), sample.GPUClockMemory},
		{callClock, int(nvml.CLOCK_GRAPHICS), sample.GPUClockGraphics},
		{callClock, int(nvml.CLOCK_VIDEO), sample.GPUClockVideo},
		{callViolation, int(nvml.PERF_POLICY_POWER), sample.GPUThrottledPower},
		{callViolation, int(nvml.PERF_POLICY_THERMAL), sample.GPUThrottledThermal},
		{callViolation, int(nvml.PERF_POLICY_SYNC_BOOST), sample.GPUThrottledSyncBoost},
		{callViolation, int(nvml.PERF_POLICY_BOARD_LIMIT), sample.GPUThrottledBoard},
		{callViolation, int(nvml.PERF_POLICY_RELIABILITY), sample.GPUThrottledReliability},
		{callErrors, int(nvml.MEMORY_ERROR_TYPE_CORRECTED), sample.GPUErrorsCorrected},
		{callErrors, int(nvml.MEMORY_ERROR_TYPE_UNCORRECTED), sample.GPUErrorsUncorrected},
		{callThreshold, int(nvml.TEMPERATURE_THRESHOLD_SLOWDOWN), sample.GPUSlowdownAt},
		{callThreshold, int(nvml.TEMPERATURE_THRESHOLD_SHUTDOWN), sample.GPUShutdownAt},
		{callThreshold, int(nvml.TEMPERATURE_THRESHOLD_MEM_MAX), sample.GPUMemorySlowdownAt},
	} {
		i := slices.IndexFunc(rows, func(p row) bool { return p.call == c.call && p.quantity == c.quantity })
		if i < 0 || rows[i].id != uint32(c.argument) {
			t.Errorf("%s of %v: got no row with the argument %d", c.call, c.quantity, c.argument)
		}
	}
	for q := range nothing {
		i := slices.IndexFunc(rows, func(p row) bool { return p.quantity == q })
		if i < 0 || rows[i].unit.max == 0 || rows[i].unit.factor == 0 || nameOf(q) == "" {
			t.Errorf("%v: got no row, range or name, want each", q)
		}
	}
}

// Every function that is called by its name is one of the driver: the stand-in for its library has all of them.
func TestFunctionNames(t *testing.T) {
	read := func(pattern string) (text []byte) {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: got %v, %v, want files", pattern, files, err)
		}
		for _, file := range files {
			one, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, one...)
		}
		return text
	}
	standIn := read("../../../testdata/fakenvml/*.c")
	product := slices.Concat(read("nvml*.go"), read("table.go"))
	names := regexp.MustCompile(`"(nvml[A-Z]\w+)"`).FindAllSubmatch(product, -1)
	if len(names) < 50 {
		t.Fatalf("got %d names of functions, want all", len(names))
	}
	for _, name := range names {
		if !regexp.MustCompile(`\b` + string(name[1]) + `(_v\d)?\b`).Match(standIn) {
			t.Errorf("the stand-in has no function %s", name[1])
		}
	}
}
