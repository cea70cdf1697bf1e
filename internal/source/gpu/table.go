package gpu

import (
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// quantity is a number that is read of a GPU: one of sample.GPUQuantity, or one of these, which are no details.
type quantity = sample.GPUQuantity

const (
	busyRate          = sample.GPUQuantities + iota // percent, newest period of the driver
	memoryTotal                                     // bytes
	memoryUsed                                      // bytes
	temperature                                     // degrees Celsius
	power                                           // watts
	energyCounter                                   // joules
	meanPower                                       // watts; only a GPU has it whose power is a mean of about a second
	linkWidth                                       // PCIe lanes now
	linkGeneration                                  // PCIe generation now
	linkWidthMax                                    // of GPU and slot
	linkGenerationMax                               //
	throttleReasons                                 // bit mask of why clocks are reduced
	nothing                                         // a call whose result is no number, or is not read by the loop
)

// garbageNames are the names of quantities that are no details, where values that cannot be are reported.
var garbageNames = map[quantity]string{
	busyRate: "utilization", memoryTotal: "memory", memoryUsed: "memory", temperature: "temperature", power: "power",
	energyCounter: "energy", meanPower: "power", linkWidth: "PCIe link", linkGeneration: "PCIe link",
	linkWidthMax: "PCIe link", linkGenerationMax: "PCIe link", throttleReasons: "throttle reasons",
}

func nameOf(q quantity) string {
	if q < sample.GPUQuantities {
		return q.String()
	}
	return garbageNames[q]
}

// unit is what the driver counts in, and which values are possible.
type unit struct {
	factor    float64 // to ratios, seconds, bytes, hertz, joules, watts
	min, max  float64 // after the factor
	maxGrowth float64 // of a counter in a second; 0 for what is no counter, or may jump
}

const (
	maxWatts   = 10_000               // above any GPU
	maxSeconds = 30 * 365 * 24 * 3600 // thirty years
	maxBytes   = 1 << 60              // of a counter
	maxTraffic = 8e12                 // bytes a second
	maxRatio   = 1.02                 // GPM divides two counters that are not read at the same time
)

var (
	percent     = unit{0.01, 0, 1, 0}
	percents    = unit{1, 0, 100, 0}
	gpmPercent  = unit{0.01, 0, maxRatio, 0}
	fanPercent  = unit{0.01, 0, 2, 0} // nvml.h: it may exceed 100 %
	mebibytes   = unit{1 << 20, 0, maxTraffic, 0}
	memoryBytes = unit{1, 0, 1 << 50, 0}
	countBytes  = unit{1, 0, maxBytes, maxTraffic}
	countKiB    = unit{1024, 0, maxBytes, maxTraffic}
	milliwatts  = unit{1e-3, 0, maxWatts, 0}
	millijoules = unit{1e-3, 0, maxWatts * maxSeconds, 2 * maxWatts}
	celsius     = unit{1, -50, 200, 0}
	limit       = unit{1, 0, 200, 0} // degrees Celsius
	megahertz   = unit{1e6, 0, 20e9, 0}
	nanoseconds = unit{1e-9, 0, maxSeconds, 1.5}  // of throttling: the driver has its own clock
	errorCount  = unit{1, 0, 1 << 48, 1e6}        // a failing chip corrects thousands a second
	replays     = unit{1, 0, math.MaxUint32, 1e6} //
	replaced    = unit{1, 0, 1 << 20, 0}          // rows or pages; a GPU can replace some hundreds
	flag        = unit{1, 0, 1, 0}                //
	lanes       = unit{1, 1, 64, 0}               //
	generation  = unit{1, 1, 16, 0}               //
	bits        = unit{1, 0, math.MaxUint32, 0}   //
	none        unit                              //

	// Units of files. Where the least is more than 0, that stands for what a chip lacks.
	watts        = unit{1, 0, maxWatts, 0}
	microwatts   = unit{1e-6, 0, maxWatts, 0}
	powerCap     = unit{1e-6, 1e-6, maxWatts, 0}
	accumulated  = unit{1.0 / (1 << 16), 1.0 / (1 << 16), maxWatts * maxSeconds, 2 * maxWatts} // joules
	millicelsius = unit{1e-3, -50, 200, 0}
	milliLimit   = unit{1e-3, 1e-3, 200, 0}
	someClock    = unit{1e6, 1, 20e9, 0}
	seconds      = unit{1, 0, maxSeconds, 1.5}
)

// contains reports whether a value is possible. NaN is not.
func (u unit) contains(value float64) bool { return value >= u.min && value <= u.max }

// How often a row is read. Slow ones have turns, so that the cost is spread.
const (
	once   = time.Duration(0)
	second = readInterval
	slow   = rotations * readInterval

	rotations = 10 // readings in which each slow row has its turn
)

// row is a number of a GPU: what to read, by which call, in which unit, how often, and since which driver. If several
// rows have one quantity, the first that works is used. What is asked of one function is asked in one call of device.
type row struct {
	call     string // the function of nvml.h, or a file of amdgpu
	name     string // of a field value or metric in nvml.h or gpu_metrics; "" for what the call itself returns
	id       uint32 // of the field value or metric; the function's argument; which of its numbers
	quantity quantity
	unit     unit
	period   time.Duration
	since    int // the first driver whose nvml.h has it; 0 for one before 455
	traits   traits
	feature  string // its name in stallspan check; any row with that name provides it
}

type traits uint16

const (
	onMIG    traits = 1 << iota // supported by MIG devices
	basic                       // worth asking again after an error that may pass, and no permission
	wraps                       // a counter that may wrap at 32 bits
	allLinks                    // a field value of all NVLinks
	byReason                    // a slow counter of throttle time, also read while the driver gives its reason
	byRate                      // a rate that is added up to a counter
	together                    // not believed if the row before it is not
	onAMD                       // only a file of amdgpu
	onBoth                      // asked of both makers' drivers
)

const (
	callSamples     = "nvmlDeviceGetSamples"
	callRates       = "nvmlDeviceGetUtilizationRates"
	callMemory      = "nvmlDeviceGetMemoryInfo"
	callProcesses   = "nvmlDeviceGetComputeRunningProcesses"
	callEvents      = "nvmlDeviceRegisterEvents"
	callGPM         = "nvmlGpmSampleGet"
	callReasons     = "nvmlDeviceGetCurrentClocksEventReasons"
	callFields      = "nvmlDeviceGetFieldValues"
	callTemperature = "nvmlDeviceGetTemperature"
	callClock       = "nvmlDeviceGetClockInfo"
	callViolation   = "nvmlDeviceGetViolationStatus"
	callErrors      = "nvmlDeviceGetTotalEccErrors"
	callRows        = "nvmlDeviceGetRemappedRows"
	callPages       = "nvmlDeviceGetRetiredPages"
	callThreshold   = "nvmlDeviceGetTemperatureThreshold"

	callTable = "gpu_metrics"     // the table of amdgpu; its other calls are files of one number
	callUsers = "/sys/class/kfd"  // its list of processes
	callRAS   = "ras/*_err_count" // a file for each part of a card
)

// rows are read in this order. GPM comes before the field values, as its rates help to unwrap their counters, and so do
// the reasons, which say what grows. nvmlDeviceGetPcieThroughput is not used: each call measures for 20 ms, and holds
// the driver's lock meanwhile. Medians of the time of field values on an H200 (driver 580.159.04): 3 ms for energy,
// 0.8 ms for each of 75, 270 and 271, 0.3 ms for each direction of PCIe, 5 to 26 us for the others. The driver's
// latencyUsec would show it after some readings only.
var rows = []row{
	{callSamples, "", 0, nothing, none, second, 0, onMIG | basic | onBoth, "utilization samples"},
	{callRates, "", 0, busyRate, percents, second, 0, onMIG | basic, "utilization"},
	{callRates, "", 1, sample.GPUController, percent, second, 0, onMIG | basic, ""},
	{callMemory, "", 0, memoryTotal, memoryBytes, second, 0, onMIG | basic | onBoth, "memory"},
	{callMemory, "", 1, memoryUsed, memoryBytes, second, 0, onMIG | basic | onBoth, ""},
	{callMemory, "", 2, sample.GPUMemoryReserved, memoryBytes, second, 0, onMIG | basic, ""},

	{callGPM, "NVML_GPM_METRIC_SM_UTIL", 2, sample.GPUSMActive, gpmPercent, second, 520, onMIG, "GPM"},
	{callGPM, "NVML_GPM_METRIC_SM_OCCUPANCY", 3, sample.GPUSMOccupancy, gpmPercent, second, 520, onMIG, "GPM"},
	{callGPM, "NVML_GPM_METRIC_ANY_TENSOR_UTIL", 5, sample.GPUTensorActive, gpmPercent, second, 520, onMIG, "GPM"},
	{callGPM, "NVML_GPM_METRIC_DRAM_BW_UTIL", 10, sample.GPUDRAMActive, gpmPercent, second, 520, onMIG, "GPM"},
	{callGPM, "NVML_GPM_METRIC_PCIE_RX_PER_SEC", 21, sample.GPUPCIeReceiveRate, mebibytes, second, 520, onMIG, "GPM"},
	{callGPM, "NVML_GPM_METRIC_PCIE_TX_PER_SEC", 20, sample.GPUPCIeSendRate, mebibytes, second, 520, onMIG, "GPM"},
	{callGPM, "NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC", 60, sample.GPUNVLinkReceived, mebibytes, second, 520,
		onMIG | byRate, "GPM"},
	{callGPM, "NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC", 61, sample.GPUNVLinkSent, mebibytes, second, 520,
		onMIG | byRate, "GPM"},

	{callReasons, "", 0, throttleReasons, bits, second, 0, 0, "throttle time"},
	{"nvmlDeviceGetCurrentClocksThrottleReasons", "", 0, throttleReasons, bits, second, 0, 0, "throttle time"},

	{callFields, "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 83, energyCounter, millijoules, slow, 0, 0, "energy"},
	{callFields, "NVML_FI_DEV_POWER_AVERAGE", 185, meanPower, milliwatts, once, 535, 0, ""},
	{callFields, "NVML_FI_DEV_PCIE_COUNT_RX_BYTES", 198, sample.GPUPCIeReceived, countBytes, second, 555, wraps,
		"PCIe counters"},
	{callFields, "NVML_FI_DEV_PCIE_COUNT_TX_BYTES", 197, sample.GPUPCIeSent, countBytes, second, 555, wraps,
		"PCIe counters"},
	{callFields, "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", 139, sample.GPUNVLinkReceived, countKiB, second, 0, allLinks,
		"NVLink counters"},
	{callFields, "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", 138, sample.GPUNVLinkSent, countKiB, second, 0, allLinks,
		"NVLink counters"},
	{callFields, "NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES", 204, sample.GPUNVLinkReceived, countBytes, second, 560, allLinks,
		"NVLink counters"},
	{callFields, "NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES", 202, sample.GPUNVLinkSent, countBytes, second, 560, allLinks,
		"NVLink counters"},
	{callFields, "NVML_FI_DEV_MEMORY_TEMP", 82, sample.GPUTemperatureMemory, celsius, second, 0, 0,
		"memory temperature"},
	{callFields, "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP", 74, sample.GPUThrottledPower, nanoseconds, second, 575,
		0, "throttle time"},
	{callFields, "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN", 269, sample.GPUThrottledThermal, nanoseconds,
		second, 575, 0, "throttle time"},
	{callFields, "NVML_FI_DEV_PERF_POLICY_THERMAL", 75, sample.GPUThrottledThermal, nanoseconds, slow, 0, byReason,
		"throttle time"},
	{callFields, "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN", 270, sample.GPUThrottledHWThermal, nanoseconds,
		slow, 575, byReason, ""},
	{callFields, "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN", 271, sample.GPUThrottledPowerBrake,
		nanoseconds, slow, 575, byReason, ""},
	{callFields, "NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST", 76, sample.GPUThrottledSyncBoost, nanoseconds, second,
		575, 0, ""},
	{callFields, "NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT", 77, sample.GPUThrottledBoard, nanoseconds, second, 0, 0, ""},
	{callFields, "NVML_FI_DEV_PERF_POLICY_RELIABILITY", 79, sample.GPUThrottledReliability, nanoseconds, second, 0, 0, ""},

	{callTemperature, "", 0, temperature, celsius, second, 0, basic, "temperature"},
	{"nvmlDeviceGetTotalEnergyConsumption", "", 0, energyCounter, millijoules, slow, 0, basic, "energy"},
	{"nvmlDeviceGetPowerUsage", "", 0, power, milliwatts, second, 0, basic, "power"},
	{"nvmlDeviceGetCurrPcieLinkWidth", "", 0, linkWidth, lanes, second, 0, basic, ""},
	{"nvmlDeviceGetCurrPcieLinkGeneration", "", 0, linkGeneration, generation, second, 0, basic, "PCIe link"},
	{"nvmlDeviceGetMaxPcieLinkWidth", "", 0, linkWidthMax, lanes, once, 0, basic, ""},
	{"nvmlDeviceGetMaxPcieLinkGeneration", "", 0, linkGenerationMax, generation, once, 0, basic, "PCIe link limits"},
	{callProcesses, "", 0, nothing, none, slow, 0, onMIG | basic, "processes"},
	{callEvents, "", 0, nothing, none, once, 0, 0, "XID events"},

	{"nvmlDeviceGetEncoderUtilization", "", 0, sample.GPUEncoder, percent, second, 0, 0, "encoder and decoder"},
	{"nvmlDeviceGetDecoderUtilization", "", 0, sample.GPUDecoder, percent, second, 0, 0, "encoder and decoder"},
	{callClock, "", 1, sample.GPUClockSM, megahertz, second, 0, 0, "clocks"},
	{callClock, "", 2, sample.GPUClockMemory, megahertz, second, 0, 0, "clocks"},
	{callClock, "", 0, sample.GPUClockGraphics, megahertz, second, 0, 0, "clocks"},
	{callClock, "", 3, sample.GPUClockVideo, megahertz, second, 0, 0, "clocks"},
	{callViolation, "", 0, sample.GPUThrottledPower, nanoseconds, second, 0, 0, "throttle time"},
	{callViolation, "", 1, sample.GPUThrottledThermal, nanoseconds, second, 0, 0, "throttle time"},
	{callViolation, "", 2, sample.GPUThrottledSyncBoost, nanoseconds, second, 0, 0, ""},
	{callViolation, "", 3, sample.GPUThrottledBoard, nanoseconds, second, 0, 0, ""},
	{callViolation, "", 5, sample.GPUThrottledReliability, nanoseconds, second, 0, 0, ""},

	{"nvmlDeviceGetEnforcedPowerLimit", "", 0, sample.GPUPowerLimit, milliwatts, slow, 0, 0, "power limit"},
	{"nvmlDeviceGetFanSpeed", "", 0, sample.GPUFan, fanPercent, slow, 0, 0, "fan"},
	{callErrors, "", 0, sample.GPUErrorsCorrected, errorCount, slow, 0, 0, "ECC errors"},
	{callErrors, "", 1, sample.GPUErrorsUncorrected, errorCount, slow, 0, 0, "ECC errors"},
	{"nvmlDeviceGetPcieReplayCounter", "", 0, sample.GPUPCIeReplays, replays, slow, 0, 0, "PCIe replays"},
	{callRows, "", 0, sample.GPURowsRemapped, replaced, slow, 0, 0, "row remapping"},
	{callRows, "", 1, sample.GPURepairPending, flag, slow, 0, together, ""},
	{callRows, "", 2, sample.GPURepairFailed, flag, slow, 0, together, ""},
	{callPages, "", 0, sample.GPUPagesRetired, replaced, slow, 0, 0, "retired pages"},
	{callPages, "", 1, sample.GPURepairPending, flag, slow, 0, together, ""},
	{callThreshold, "", 1, sample.GPUSlowdownAt, limit, once, 0, 0, "temperature limits"},
	{callThreshold, "", 0, sample.GPUShutdownAt, limit, once, 0, 0, "temperature limits"},
	{callThreshold, "", 2, sample.GPUMemorySlowdownAt, limit, once, 0, 0, "temperature limits"},

	{callTable, "temperature_edge", amdEdge, temperature, celsius, second, 0, onAMD, "temperature"},
	{callTable, "temperature_hotspot", amdHotspot, temperature, celsius, second, 0, onAMD, "temperature"},
	{callTable, "temperature_mem", amdMemoryHeat, sample.GPUTemperatureMemory, celsius, second, 0, onAMD,
		"memory temperature"},
	{callTable, "average_umc_activity", amdController, sample.GPUController, percent, second, 0, onAMD, ""},
	{callTable, "energy_accumulator", amdEnergy, energyCounter, accumulated, second, 0, onAMD, "energy"},
	{callTable, "average_socket_power", amdPower, power, watts, second, 0, onAMD, "power"},
	{callTable, "current_gfxclk", amdGraphicsClock, sample.GPUClockGraphics, someClock, second, 0, onAMD, "clocks"},
	{callTable, "current_uclk", amdMemoryClock, sample.GPUClockMemory, someClock, second, 0, onAMD, "clocks"},
	{callTable, "current_vclk0", amdVideoClock, sample.GPUClockVideo, someClock, second, 0, onAMD, "clocks"},
	{callTable, "pcie_replay_count_acc", amdReplays, sample.GPUPCIeReplays, replays, second, 0, onAMD, ""},
	{callTable, "indep_throttle_status", amdThrottlers, throttleReasons, bits, second, 0, onAMD, "throttle time"},
	{callTable, "ppt_residency_acc", amdPowerCounts, sample.GPUThrottledPower, seconds, second, 0, onAMD, "throttle time"},
	{callTable, "socket_thm_residency_acc", amdThermalCounts, sample.GPUThrottledThermal, seconds, second, 0, onAMD,
		"throttle time"},
	{callTable, "prochot_residency_acc", amdHotCounts, sample.GPUThrottledHWThermal, seconds, second, 0, onAMD, ""},
	{"hwmon/hwmon*/temp1_input", "", 0, temperature, millicelsius, second, 0, onAMD, "temperature"}, // the edge, if any
	{"hwmon/hwmon*/power1_average", "", 0, power, microwatts, second, 0, onAMD, "power"},
	{"hwmon/hwmon*/power1_input", "", 0, power, microwatts, second, 0, onAMD, "power"},
	{"current_link_width", "", 0, linkWidth, lanes, second, 0, onAMD, ""},
	{"current_link_speed", "", 0, linkGeneration, generation, second, 0, onAMD, "PCIe link"},
	{"max_link_width", "", 0, linkWidthMax, lanes, once, 0, onAMD, ""},
	{"max_link_speed", "", 0, linkGenerationMax, generation, once, 0, onAMD, "PCIe link limits"},
	{callUsers, "", 0, nothing, none, once, 0, onAMD, "processes"},
	{"hwmon/hwmon*/power1_cap", "", 0, sample.GPUPowerLimit, powerCap, slow, 0, onAMD, "power limit"},
	{"hwmon/hwmon*/temp1_crit", "", 0, sample.GPUSlowdownAt, milliLimit, once, 0, onAMD, "temperature limits"},
	{"hwmon/hwmon*/temp2_crit", "", 0, sample.GPUSlowdownAt, milliLimit, once, 0, onAMD, "temperature limits"},
	{"hwmon/hwmon*/temp3_crit", "", 0, sample.GPUMemorySlowdownAt, milliLimit, once, 0, onAMD, "temperature limits"},
	{callRAS, "", 0, sample.GPUErrorsCorrected, errorCount, slow, 0, onAMD, "ECC errors"},
	{callRAS, "", 1, sample.GPUErrorsUncorrected, errorCount, slow, 0, onAMD, "ECC errors"},
}

// calls are the rows of each function, as the first one's index and the one after the last.
var calls = func() (list []span) {
	for i := range rows {
		if n := len(list); n > 0 && rows[list[n-1].from].call == rows[i].call {
			list[n-1].to++
			continue
		}
		list = append(list, span{i, i + 1})
	}
	return list
}()

type span struct{ from, to int }

// rowsOf returns the rows of a function.
func rowsOf(call string) span {
	i := slices.IndexFunc(calls, func(s span) bool { return rows[s.from].call == call })
	return calls[i]
}

// The rows that have a reader of their own.
var (
	sampleRows, rateRows, memoryRows = rowsOf(callSamples), rowsOf(callRates), rowsOf(callMemory)
	processRows, gpmRows             = rowsOf(callProcesses), rowsOf(callGPM)
	eventRows                        = rowsOf(callEvents)
)

// turns are in which of so many readings each slow row is read: what takes the driver long is not read together. Rows
// that belong together, or provide the same, have one turn.
var turns = func() []int {
	list, turn := make([]int, len(rows)), 0
	for i, p := range rows {
		known := slices.IndexFunc(rows[:i], func(before row) bool {
			return before.quantity == p.quantity && before.period == slow
		})
		switch {
		case p.period != slow:
		case p.traits&together != 0:
			list[i] = list[i-1]
		case known >= 0:
			list[i] = list[known]
		default:
			list[i], turn = turn%rotations, turn+1
		}
	}
	return list
}()

// reasonBits are the bits of throttleReasons, with the counter of their time.
var reasonBits = map[quantity]uint64{
	sample.GPUThrottledPower: 0x4, sample.GPUThrottledThermal: 0x20, sample.GPUThrottledHWThermal: 0x40,
	sample.GPUThrottledPowerBrake: 0x80, sample.GPUThrottledSyncBoost: 0x10, sample.GPUThrottledBoard: 0x200,
	sample.GPUThrottledReliability: 0x400,
}
