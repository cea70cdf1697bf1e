package gpu

import "github.com/stallspan/stallspan/internal/sample"

// question is something that a GPU may be asked for: one call of the driver, or two that belong together.
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

	numQueries // how many there are
)

// cadence says how often a detail is asked for.
type cadence uint8

const (
	custom      cadence = iota // it has code of its own
	everySecond                // with every reading that is asked for details
	rotating                   // with every tenth, one question after the other, so that no reading pays for all
	once                       // it does not change
)

// turns is how many readings it takes until each question inTurn was asked again.
const rotations = 10

// plan says what a question is.
type querySpec struct {
	call       string // the function under which people find it in NVIDIA's documents
	each       cadence
	onMIG      bool                 // MIG slices answer it too
	fallback   bool                 // asked for only where no field tells the same
	quantities []sample.GPUQuantity // what the answer may hold, of those that have no code of their own
}

// plans has the calls in the order in which they are made. nvmlDeviceGetPcieThroughput is not among them: it measures for
// 20 ms each time, and holds the driver's lock meanwhile.
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

	queryPowerLimit:   detail("nvmlDeviceGetEnforcedPowerLimit", rotating, sample.GPUPowerLimit),
	queryFan:          detail("nvmlDeviceGetFanSpeed", rotating, sample.GPUFan),
	queryCorrected:    detail("nvmlDeviceGetTotalEccErrors", rotating, sample.GPUErrorsCorrected),
	queryUncorrected:  detail("nvmlDeviceGetTotalEccErrors", rotating, sample.GPUErrorsUncorrected),
	queryReplays:      detail("nvmlDeviceGetPcieReplayCounter", rotating, sample.GPUPCIeReplays),
	queryRemappedRows: detail("nvmlDeviceGetRemappedRows", rotating, sample.GPURowsRemapped, sample.GPURepairPending, sample.GPURepairFailed),
	queryRetiredPages: detail("nvmlDeviceGetRetiredPages", rotating, sample.GPUPagesRetired, sample.GPURepairPending),

	querySlowdown:       detail("nvmlDeviceGetTemperatureThreshold", once, sample.GPUSlowdownAt),
	queryShutdown:       detail("nvmlDeviceGetTemperatureThreshold", once, sample.GPUShutdownAt),
	queryMemorySlowdown: detail("nvmlDeviceGetTemperatureThreshold", once, sample.GPUMemorySlowdownAt),
}

func detail(call string, each cadence, quantities ...sample.GPUQuantity) querySpec {
	return querySpec{call: call, each: each, quantities: quantities}
}

func violation(q sample.GPUQuantity) querySpec {
	return querySpec{call: "nvmlDeviceGetViolationStatus", each: everySecond, fallback: true, quantities: []sample.GPUQuantity{q}}
}

func (q query) String() string { return querySpecs[q].call }
