package gpu

import (
	"math"
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
)

// What is read of a GPU, how often and by which call.

// query is one call of the driver for a GPU, or two that belong together.
type query int32

const (
	querySamples query = iota
	queryRates
	queryMemory
	queryTemperature
	queryPower
	queryEnergy
	queryLink
	queryMaxLink
	queryProcesses
	queryXIDs
	queryFields
	queryGPM
	queryReasons

	queryEncoder
	queryDecoder
	queryClockSM
	queryClockMemory
	queryClockGraphics
	queryClockVideo
	queryViolationPower
	queryViolationThermal
	queryViolationSyncBoost
	queryViolationBoard
	queryViolationReliability

	queryPowerLimit
	queryFan
	queryCorrected
	queryUncorrected
	queryReplays
	queryRemappedRows
	queryRetiredPages

	querySlowdown
	queryShutdown
	queryMemorySlowdown

	numQueries
)

// cadence is how often a query is made.
type cadence uint8

const (
	custom      cadence = iota // by code of its own
	everySecond                // in every reading of details
	rotating                   // in every tenth, one query at a time, so that the cost is spread
	once                       // a constant
)

// rotations is the number of readings after which every rotating query has been made.
const rotations = 10 // about a second each

// row is a value that is read: by a function of the driver, as a field value or as a metric of GPM.
type row struct {
	name     string             // in nvml.h
	id       uint32             // of a field value or metric, or a function's argument: which clock, policy, kind or limit
	scope    uint32             // of a field value: NVLink index
	quantity sample.GPUQuantity // the result, unless each is custom
	more     []sample.GPUQuantity
	unit     float64 // of the number that the function returns; 0 if it returns several
	each     cadence // of a function
	traits   traits
	since    int    // the first driver whose nvml.h has it; 0 for one before 455
	feature  string // its name in stallspan check; any row with that name provides it
}

type traits uint8

const (
	wraps    traits = 1 << iota
	rarely          // takes the driver long, and is read each second only while isFieldDue finds a reason
	onMIG           // supported by MIG devices
	fallback        // called only if no field value provides the same
)

// quantities are the results.
func (p *row) quantities() []sample.GPUQuantity {
	if p.each == custom {
		return nil
	}
	return append([]sample.GPUQuantity{p.quantity}, p.more...)
}

// callRows has the functions in the order in which they are called. nvmlDeviceGetPcieThroughput is not used: each call
// measures for 20 ms, and holds the driver's lock meanwhile.
var callRows = [numQueries]row{
	querySamples:     {name: "nvmlDeviceGetSamples", traits: onMIG, feature: "utilization samples"},
	queryRates:       {name: "nvmlDeviceGetUtilizationRates", traits: onMIG, feature: "utilization"},
	queryMemory:      {name: "nvmlDeviceGetMemoryInfo", traits: onMIG, feature: "memory"},
	queryTemperature: {name: "nvmlDeviceGetTemperature", feature: "temperature"},
	queryPower:       {name: "nvmlDeviceGetPowerUsage", feature: "power"},
	queryEnergy:      {name: "nvmlDeviceGetTotalEnergyConsumption", feature: "energy"},
	queryLink:        {name: "nvmlDeviceGetCurrPcieLinkWidth", feature: "PCIe link"},
	queryMaxLink:     {name: "nvmlDeviceGetMaxPcieLinkWidth", feature: "PCIe link limits"},
	queryProcesses:   {name: "nvmlDeviceGetComputeRunningProcesses", traits: onMIG, feature: "processes"},
	queryXIDs:        {name: "nvmlDeviceRegisterEvents", feature: "XID events"},
	queryFields:      {name: "nvmlDeviceGetFieldValues"},
	queryGPM:         {name: "nvmlGpmSampleGet", traits: onMIG, since: 520, feature: "GPM"},
	queryReasons:     {name: "nvmlDeviceGetCurrentClocksEventReasons", feature: "throttle time"},

	queryEncoder: {name: "nvmlDeviceGetEncoderUtilization", quantity: sample.GPUEncoder, unit: 0.01,
		each: everySecond, feature: "encoder and decoder"},
	queryDecoder: {name: "nvmlDeviceGetDecoderUtilization", quantity: sample.GPUDecoder, unit: 0.01,
		each: everySecond, feature: "encoder and decoder"},
	queryClockSM: {name: "nvmlDeviceGetClockInfo", id: 1, quantity: sample.GPUClockSM, unit: 1e6,
		each: everySecond, feature: "clocks"},
	queryClockMemory: {name: "nvmlDeviceGetClockInfo", id: 2, quantity: sample.GPUClockMemory,
		unit: 1e6, each: everySecond, feature: "clocks"},
	queryClockGraphics: {name: "nvmlDeviceGetClockInfo", quantity: sample.GPUClockGraphics, unit: 1e6,
		each: everySecond, feature: "clocks"},
	queryClockVideo: {name: "nvmlDeviceGetClockInfo", id: 3, quantity: sample.GPUClockVideo,
		unit: 1e6, each: everySecond, feature: "clocks"},

	queryViolationPower: {name: "nvmlDeviceGetViolationStatus", quantity: sample.GPUThrottledPower,
		unit: 1e-9, each: everySecond, traits: fallback, feature: "throttle time"},
	queryViolationThermal: {name: "nvmlDeviceGetViolationStatus", id: 1,
		quantity: sample.GPUThrottledThermal, unit: 1e-9, each: everySecond, traits: fallback, feature: "throttle time"},
	queryViolationSyncBoost: {name: "nvmlDeviceGetViolationStatus", id: 2,
		quantity: sample.GPUThrottledSyncBoost, unit: 1e-9, each: everySecond, traits: fallback},
	queryViolationBoard: {name: "nvmlDeviceGetViolationStatus", id: 3,
		quantity: sample.GPUThrottledBoard, unit: 1e-9, each: everySecond, traits: fallback},
	queryViolationReliability: {name: "nvmlDeviceGetViolationStatus", id: 5,
		quantity: sample.GPUThrottledReliability, unit: 1e-9, each: everySecond, traits: fallback},

	queryPowerLimit: {name: "nvmlDeviceGetEnforcedPowerLimit", quantity: sample.GPUPowerLimit,
		unit: 1e-3, each: rotating, feature: "power limit"},
	queryFan: {name: "nvmlDeviceGetFanSpeed", quantity: sample.GPUFan, unit: 0.01, each: rotating, feature: "fan"},
	queryCorrected: {name: "nvmlDeviceGetTotalEccErrors", quantity: sample.GPUErrorsCorrected,
		unit: 1, each: rotating, feature: "ECC errors"},
	queryUncorrected: {name: "nvmlDeviceGetTotalEccErrors", id: 1,
		quantity: sample.GPUErrorsUncorrected, unit: 1, each: rotating, feature: "ECC errors"},
	queryReplays: {name: "nvmlDeviceGetPcieReplayCounter", quantity: sample.GPUPCIeReplays, unit: 1,
		each: rotating, feature: "PCIe replays"},
	queryRemappedRows: {name: "nvmlDeviceGetRemappedRows", quantity: sample.GPURowsRemapped,
		more: []sample.GPUQuantity{sample.GPURepairPending, sample.GPURepairFailed}, each: rotating,
		feature: "row remapping"},
	queryRetiredPages: {name: "nvmlDeviceGetRetiredPages", quantity: sample.GPUPagesRetired,
		more: []sample.GPUQuantity{sample.GPURepairPending}, each: rotating, feature: "retired pages"},

	querySlowdown: {name: "nvmlDeviceGetTemperatureThreshold", id: 1, quantity: sample.GPUSlowdownAt,
		unit: 1, each: once, feature: "temperature limits"},
	queryShutdown: {name: "nvmlDeviceGetTemperatureThreshold", quantity: sample.GPUShutdownAt,
		unit: 1, each: once, feature: "temperature limits"},
	queryMemorySlowdown: {name: "nvmlDeviceGetTemperatureThreshold", id: 2,
		quantity: sample.GPUMemorySlowdownAt, unit: 1, each: once, feature: "temperature limits"},
}

func (q query) String() string { return callRows[q].name }

// fieldRows are read in one call. If several provide one quantity, the first that is supported is used. Medians of the
// time of each on an H200 (driver 580.159.04): 3 ms for energy, 0.8 ms for each of 75, 270 and 271, 0.3 ms for each
// direction of PCIe, 5 to 26 us for the others. The driver's latencyUsec would show it after some readings only.
var fieldRows = []row{
	{name: "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION", id: 83, quantity: energyCounter, unit: 1e-3,
		traits: rarely, feature: "energy"},
	{name: "NVML_FI_DEV_POWER_AVERAGE", id: 185, quantity: meanPower, unit: 1e-3, since: 535}, // requested once
	{name: "NVML_FI_DEV_PCIE_COUNT_RX_BYTES", id: 198, quantity: sample.GPUPCIeReceived, unit: 1,
		traits: wraps, since: 555, feature: "PCIe counters"},
	{name: "NVML_FI_DEV_PCIE_COUNT_TX_BYTES", id: 197, quantity: sample.GPUPCIeSent, unit: 1,
		traits: wraps, since: 555, feature: "PCIe counters"},
	{name: "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", id: 139, scope: allLinks,
		quantity: sample.GPUNVLinkReceived, unit: 1024, feature: "NVLink counters"},
	{name: "NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", id: 138, scope: allLinks,
		quantity: sample.GPUNVLinkSent, unit: 1024, feature: "NVLink counters"},
	{name: "NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES", id: 204, scope: allLinks,
		quantity: sample.GPUNVLinkReceived, unit: 1, since: 560, feature: "NVLink counters"},
	{name: "NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES", id: 202, scope: allLinks,
		quantity: sample.GPUNVLinkSent, unit: 1, since: 560, feature: "NVLink counters"},
	{name: "NVML_FI_DEV_MEMORY_TEMP", id: 82, quantity: sample.GPUTemperatureMemory, unit: 1,
		feature: "memory temperature"},
	{name: "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP", id: 74, quantity: sample.GPUThrottledPower,
		unit: 1e-9, since: 575, feature: "throttle time"},
	{name: "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN", id: 269,
		quantity: sample.GPUThrottledThermal, unit: 1e-9, since: 575, feature: "throttle time"},
	{name: "NVML_FI_DEV_PERF_POLICY_THERMAL", id: 75, quantity: sample.GPUThrottledThermal,
		unit: 1e-9, traits: rarely, feature: "throttle time"},
	{name: "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN", id: 270,
		quantity: sample.GPUThrottledHWThermal, unit: 1e-9, traits: rarely, since: 575},
	{name: "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN", id: 271,
		quantity: sample.GPUThrottledPowerBrake, unit: 1e-9, traits: rarely, since: 575},
	{name: "NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST", id: 76,
		quantity: sample.GPUThrottledSyncBoost, unit: 1e-9, since: 575},
	{name: "NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT", id: 77, quantity: sample.GPUThrottledBoard, unit: 1e-9},
	{name: "NVML_FI_DEV_PERF_POLICY_RELIABILITY", id: 79, quantity: sample.GPUThrottledReliability, unit: 1e-9},
}

const mebibyte = 1 << 20

// metricRows are the values of nvmlGpmMetricsGet.
var metricRows = []row{
	{name: "NVML_GPM_METRIC_SM_UTIL", id: 2, quantity: sample.GPUSMActive, unit: 0.01, since: 520},
	{name: "NVML_GPM_METRIC_SM_OCCUPANCY", id: 3, quantity: sample.GPUSMOccupancy, unit: 0.01, since: 520},
	{name: "NVML_GPM_METRIC_ANY_TENSOR_UTIL", id: 5, quantity: sample.GPUTensorActive, unit: 0.01, since: 520},
	{name: "NVML_GPM_METRIC_DRAM_BW_UTIL", id: 10, quantity: sample.GPUDRAMActive, unit: 0.01, since: 520},
	{name: "NVML_GPM_METRIC_PCIE_RX_PER_SEC", id: 21, quantity: sample.GPUPCIeReceiveRate, unit: mebibyte, since: 520},
	{name: "NVML_GPM_METRIC_PCIE_TX_PER_SEC", id: 20, quantity: sample.GPUPCIeSendRate, unit: mebibyte, since: 520},
	{name: "NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC",
		id: 60, quantity: sample.GPUNVLinkReceived, unit: mebibyte, since: 520},
	{name: "NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC",
		id: 61, quantity: sample.GPUNVLinkSent, unit: mebibyte, since: 520},
}

// reason is a bit of nvmlDeviceGetCurrentClocksEventReasons, and the query that counts its time, if there is one.
type reason struct {
	bit      uint64
	quantity sample.GPUQuantity
	counted  query // numQueries for none
}

var reasons = []reason{
	{0x4, sample.GPUThrottledPower, queryViolationPower},
	{0x20, sample.GPUThrottledThermal, queryViolationThermal},
	{0x40, sample.GPUThrottledHWThermal, numQueries},
	{0x80, sample.GPUThrottledPowerBrake, numQueries},
	{0x10, sample.GPUThrottledSyncBoost, queryViolationSyncBoost},
	{0x200, sample.GPUThrottledBoard, queryViolationBoard},
	{0x400, sample.GPUThrottledReliability, queryViolationReliability},
}

// bitOf returns the bit of the reason whose time a quantity counts.
func bitOf(q sample.GPUQuantity) uint64 {
	i := slices.IndexFunc(reasons, func(s reason) bool { return s.quantity == q })
	return reasons[i].bit
}

const (
	maxPower        = 10_000                // watts, above any GPU
	maxSeconds      = 30 * 365 * 24 * 3600  // thirty years
	maxEnergy       = maxPower * maxSeconds // joules
	maxBytes        = 1 << 60               // of a counter
	maxTraffic      = 8e12                  // bytes a second
	maxClock        = 20e9                  // hertz
	maxErrors       = 1 << 48
	maxErrorRate    = 1e6     // errors a second; a failing chip corrects thousands
	maxReplaced     = 1 << 20 // rows or pages; a GPU can replace some hundreds
	maxMemory       = 1 << 50 // bytes
	minTemperature  = -50     // degrees Celsius
	maxTemperature  = 200     // degrees Celsius
	maxThrottleRate = 1.5     // seconds of throttling in a second: the driver has its own clock
	maxRatio        = 1.02    // GPM divides two counters that are not read at the same time
)

// valueRange is the physical range of a quantity. maxGrowth is the maximum rate of a counter a second, 0 for no limit.
type valueRange struct{ min, max, maxGrowth float64 }

// ranges are the ranges of all quantities.
var ranges = [sample.GPUQuantities]valueRange{
	sample.GPUEncoder:              {0, 1, 0},
	sample.GPUDecoder:              {0, 1, 0},
	sample.GPUController:           {0, 1, 0},
	sample.GPUSMActive:             {0, maxRatio, 0},
	sample.GPUSMOccupancy:          {0, maxRatio, 0},
	sample.GPUTensorActive:         {0, maxRatio, 0},
	sample.GPUDRAMActive:           {0, maxRatio, 0},
	sample.GPUPCIeReceived:         {0, maxBytes, maxTraffic},
	sample.GPUPCIeSent:             {0, maxBytes, maxTraffic},
	sample.GPUPCIeReceiveRate:      {0, maxTraffic, 0},
	sample.GPUPCIeSendRate:         {0, maxTraffic, 0},
	sample.GPUNVLinkReceived:       {0, maxBytes, maxTraffic},
	sample.GPUNVLinkSent:           {0, maxBytes, maxTraffic},
	sample.GPUPowerLimit:           {0, maxPower, 0},
	sample.GPUTemperatureMemory:    {minTemperature, maxTemperature, 0},
	sample.GPUSlowdownAt:           {0, maxTemperature, 0},
	sample.GPUShutdownAt:           {0, maxTemperature, 0},
	sample.GPUMemorySlowdownAt:     {0, maxTemperature, 0},
	sample.GPUFan:                  {0, 2, 0}, // nvml.h: it may exceed 100 %
	sample.GPUClockSM:              {0, maxClock, 0},
	sample.GPUClockMemory:          {0, maxClock, 0},
	sample.GPUClockGraphics:        {0, maxClock, 0},
	sample.GPUClockVideo:           {0, maxClock, 0},
	sample.GPUThrottledPower:       {0, maxSeconds, maxThrottleRate},
	sample.GPUThrottledThermal:     {0, maxSeconds, maxThrottleRate},
	sample.GPUThrottledHWThermal:   {0, maxSeconds, maxThrottleRate},
	sample.GPUThrottledPowerBrake:  {0, maxSeconds, maxThrottleRate},
	sample.GPUThrottledSyncBoost:   {0, maxSeconds, maxThrottleRate},
	sample.GPUThrottledBoard:       {0, maxSeconds, maxThrottleRate},
	sample.GPUThrottledReliability: {0, maxSeconds, maxThrottleRate},
	sample.GPUErrorsCorrected:      {0, maxErrors, maxErrorRate},
	sample.GPUErrorsUncorrected:    {0, maxErrors, maxErrorRate},
	sample.GPUPCIeReplays:          {0, math.MaxUint32, maxErrorRate},
	sample.GPURowsRemapped:         {0, maxReplaced, 0},
	sample.GPUPagesRetired:         {0, maxReplaced, 0},
	sample.GPURepairPending:        {0, 1, 0},
	sample.GPURepairFailed:         {0, 1, 0},
	sample.GPUMemoryReserved:       {0, maxMemory, 0},
}

// contains reports whether a value is in range. NaN is not.
func (s valueRange) contains(value float64) bool { return value >= s.min && value <= s.max }

func validLink(width, generation int) bool {
	return width > 0 && width <= 64 && generation > 0 && generation <= 16
}
