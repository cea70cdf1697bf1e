package gpu

import "github.com/stallspan/stallspan/internal/sample"

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

// querySpec describes a query.
type querySpec struct {
	call       string // the function's name in NVIDIA's documentation
	each       cadence
	onMIG      bool                 // supported by MIG devices
	fallback   bool                 // made only if no field value provides the same
	quantities []sample.GPUQuantity // results of a query of details
	argument   int                  // of the call: which clock, policy, kind of error or limit (nvml.h)
	unit       float64              // of the number that the call returns; 0 if it returns several
}

// querySpecs has the queries in the order in which they are made. nvmlDeviceGetPcieThroughput is not used: each call
// measures for 20 ms, and holds the driver's lock meanwhile.
var querySpecs = [numQueries]querySpec{
	querySamples:     {call: "nvmlDeviceGetSamples", onMIG: true},
	queryRates:       {call: "nvmlDeviceGetUtilizationRates", onMIG: true},
	queryMemory:      {call: "nvmlDeviceGetMemoryInfo", onMIG: true},
	queryTemperature: {call: "nvmlDeviceGetTemperature"},
	queryPower:       {call: "nvmlDeviceGetPowerUsage"},
	queryEnergy:      {call: "nvmlDeviceGetTotalEnergyConsumption"},
	queryLink:        {call: "nvmlDeviceGetCurrPcieLinkWidth"},
	queryMaxLink:     {call: "nvmlDeviceGetMaxPcieLinkWidth"},
	queryProcesses:   {call: "nvmlDeviceGetComputeRunningProcesses", onMIG: true},
	queryXIDs:        {call: "nvmlDeviceRegisterEvents"},
	queryFields:      {call: "nvmlDeviceGetFieldValues"},
	queryGPM:         {call: "nvmlGpmSampleGet", onMIG: true},
	queryReasons:     {call: "nvmlDeviceGetCurrentClocksEventReasons"},

	queryEncoder:       detail("nvmlDeviceGetEncoderUtilization", 0, 0.01, everySecond, sample.GPUEncoder),
	queryDecoder:       detail("nvmlDeviceGetDecoderUtilization", 0, 0.01, everySecond, sample.GPUDecoder),
	queryClockSM:       detail("nvmlDeviceGetClockInfo", 1, 1e6, everySecond, sample.GPUClockSM),
	queryClockMemory:   detail("nvmlDeviceGetClockInfo", 2, 1e6, everySecond, sample.GPUClockMemory),
	queryClockGraphics: detail("nvmlDeviceGetClockInfo", 0, 1e6, everySecond, sample.GPUClockGraphics),
	queryClockVideo:    detail("nvmlDeviceGetClockInfo", 3, 1e6, everySecond, sample.GPUClockVideo),

	queryViolationPower:       violation(0, sample.GPUThrottledPower),
	queryViolationThermal:     violation(1, sample.GPUThrottledThermal),
	queryViolationSyncBoost:   violation(2, sample.GPUThrottledSyncBoost),
	queryViolationBoard:       violation(3, sample.GPUThrottledBoard),
	queryViolationReliability: violation(5, sample.GPUThrottledReliability),

	queryPowerLimit:  detail("nvmlDeviceGetEnforcedPowerLimit", 0, 1e-3, rotating, sample.GPUPowerLimit),
	queryFan:         detail("nvmlDeviceGetFanSpeed", 0, 0.01, rotating, sample.GPUFan),
	queryCorrected:   detail("nvmlDeviceGetTotalEccErrors", 0, 1, rotating, sample.GPUErrorsCorrected),
	queryUncorrected: detail("nvmlDeviceGetTotalEccErrors", 1, 1, rotating, sample.GPUErrorsUncorrected),
	queryReplays:     detail("nvmlDeviceGetPcieReplayCounter", 0, 1, rotating, sample.GPUPCIeReplays),
	queryRemappedRows: detail("nvmlDeviceGetRemappedRows", 0, 0, rotating,
		sample.GPURowsRemapped, sample.GPURepairPending, sample.GPURepairFailed),
	queryRetiredPages: detail("nvmlDeviceGetRetiredPages", 0, 0, rotating,
		sample.GPUPagesRetired, sample.GPURepairPending),

	querySlowdown:       detail("nvmlDeviceGetTemperatureThreshold", 1, 1, once, sample.GPUSlowdownAt),
	queryShutdown:       detail("nvmlDeviceGetTemperatureThreshold", 0, 1, once, sample.GPUShutdownAt),
	queryMemorySlowdown: detail("nvmlDeviceGetTemperatureThreshold", 2, 1, once, sample.GPUMemorySlowdownAt),
}

func detail(call string, argument int, unit float64, each cadence, quantities ...sample.GPUQuantity) querySpec {
	return querySpec{call: call, argument: argument, unit: unit, each: each, quantities: quantities}
}

func violation(policy int, q sample.GPUQuantity) querySpec {
	s := detail("nvmlDeviceGetViolationStatus", policy, 1e-9, everySecond, q)
	s.fallback = true
	return s
}

func (q query) String() string { return querySpecs[q].call }
