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
	quantities []sample.GPUQuantity // results of a query without code of its own
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

	queryEncoder:              detail("nvmlDeviceGetEncoderUtilization", everySecond, sample.GPUEncoder),
	queryDecoder:              detail("nvmlDeviceGetDecoderUtilization", everySecond, sample.GPUDecoder),
	queryClockSM:              detail("nvmlDeviceGetClockInfo", everySecond, sample.GPUClockSM),
	queryClockMemory:          detail("nvmlDeviceGetClockInfo", everySecond, sample.GPUClockMemory),
	queryClockGraphics:        detail("nvmlDeviceGetClockInfo", everySecond, sample.GPUClockGraphics),
	queryClockVideo:           detail("nvmlDeviceGetClockInfo", everySecond, sample.GPUClockVideo),
	queryViolationPower:       violation(sample.GPUThrottledPower),
	queryViolationThermal:     violation(sample.GPUThrottledThermal),
	queryViolationSyncBoost:   violation(sample.GPUThrottledSyncBoost),
	queryViolationBoard:       violation(sample.GPUThrottledBoard),
	queryViolationReliability: violation(sample.GPUThrottledReliability),

	queryPowerLimit:  detail("nvmlDeviceGetEnforcedPowerLimit", rotating, sample.GPUPowerLimit),
	queryFan:         detail("nvmlDeviceGetFanSpeed", rotating, sample.GPUFan),
	queryCorrected:   detail("nvmlDeviceGetTotalEccErrors", rotating, sample.GPUErrorsCorrected),
	queryUncorrected: detail("nvmlDeviceGetTotalEccErrors", rotating, sample.GPUErrorsUncorrected),
	queryReplays:     detail("nvmlDeviceGetPcieReplayCounter", rotating, sample.GPUPCIeReplays),
	queryRemappedRows: detail("nvmlDeviceGetRemappedRows", rotating,
		sample.GPURowsRemapped, sample.GPURepairPending, sample.GPURepairFailed),
	queryRetiredPages: detail("nvmlDeviceGetRetiredPages", rotating, sample.GPUPagesRetired, sample.GPURepairPending),

	querySlowdown:       detail("nvmlDeviceGetTemperatureThreshold", once, sample.GPUSlowdownAt),
	queryShutdown:       detail("nvmlDeviceGetTemperatureThreshold", once, sample.GPUShutdownAt),
	queryMemorySlowdown: detail("nvmlDeviceGetTemperatureThreshold", once, sample.GPUMemorySlowdownAt),
}

func detail(call string, each cadence, quantities ...sample.GPUQuantity) querySpec {
	return querySpec{call: call, each: each, quantities: quantities}
}

func violation(q sample.GPUQuantity) querySpec {
	s := detail("nvmlDeviceGetViolationStatus", everySecond, q)
	s.fallback = true
	return s
}

func (q query) String() string { return querySpecs[q].call }
