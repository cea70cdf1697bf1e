package gpu

import "github.com/stallspan/stallspan/internal/sample"

// question is something that a GPU may be asked for: one call of the driver, or two that belong together.
type question int32

const (
	askSamples question = iota
	askRate
	askMemory
	askTemperature
	askPower
	askEnergy
	askLink
	askLinkMax
	askProcesses
	askXIDs
	askFields
	askGPM
	askReasons

	askEncoder
	askDecoder
	askClockSM
	askClockMemory
	askClockGraphics
	askClockVideo
	askViolationPower
	askViolationThermal
	askViolationSyncBoost
	askViolationBoard
	askViolationReliability

	askPowerLimit
	askFan
	askCorrected
	askUncorrected
	askReplays
	askRows
	askPages

	askSlowdown
	askShutdown
	askMemorySlowdown

	questions // how many there are
)

// cadence says how often a detail is asked for.
type cadence uint8

const (
	special    cadence = iota // it has code of its own
	eachSecond                // with every reading that is asked for details
	inTurn                    // with every tenth, one question after the other, so that no reading pays for all
	once                      // it does not change
)

// turns is how many readings it takes until each question inTurn was asked again.
const turns = 10

// plan says what a question is.
type plan struct {
	call   string // the function under which people find it in NVIDIA's documents
	each   cadence
	slices bool                 // MIG slices answer it too
	spare  bool                 // asked for only where no field tells the same
	tells  []sample.GPUQuantity // what the answer may hold, of those that have no code of their own
}

// plans has the calls in the order in which they are made. nvmlDeviceGetPcieThroughput is not among them: it measures for
// 20 ms each time, and holds the driver's lock meanwhile.
var plans = [questions]plan{
	askSamples:     {call: "nvmlDeviceGetSamples", slices: true},
	askRate:        {call: "nvmlDeviceGetUtilizationRates", slices: true},
	askMemory:      {call: "nvmlDeviceGetMemoryInfo", slices: true},
	askTemperature: {call: "nvmlDeviceGetTemperature"},
	askPower:       {call: "nvmlDeviceGetPowerUsage"},
	askEnergy:      {call: "nvmlDeviceGetTotalEnergyConsumption"},
	askLink:        {call: "nvmlDeviceGetCurrPcieLinkWidth"},
	askLinkMax:     {call: "nvmlDeviceGetMaxPcieLinkWidth"},
	askProcesses:   {call: "nvmlDeviceGetComputeRunningProcesses", slices: true},
	askXIDs:        {call: "nvmlDeviceRegisterEvents"},
	askFields:      {call: "nvmlDeviceGetFieldValues"},
	askGPM:         {call: "nvmlGpmSampleGet", slices: true},
	askReasons:     {call: "nvmlDeviceGetCurrentClocksEventReasons"},

	askEncoder:              detail("nvmlDeviceGetEncoderUtilization", eachSecond, sample.GPUEncoder),
	askDecoder:              detail("nvmlDeviceGetDecoderUtilization", eachSecond, sample.GPUDecoder),
	askClockSM:              detail("nvmlDeviceGetClockInfo", eachSecond, sample.GPUClockSM),
	askClockMemory:          detail("nvmlDeviceGetClockInfo", eachSecond, sample.GPUClockMemory),
	askClockGraphics:        detail("nvmlDeviceGetClockInfo", eachSecond, sample.GPUClockGraphics),
	askClockVideo:           detail("nvmlDeviceGetClockInfo", eachSecond, sample.GPUClockVideo),
	askViolationPower:       violation(sample.GPUThrottledPower),
	askViolationThermal:     violation(sample.GPUThrottledThermal),
	askViolationSyncBoost:   violation(sample.GPUThrottledSyncBoost),
	askViolationBoard:       violation(sample.GPUThrottledBoard),
	askViolationReliability: violation(sample.GPUThrottledReliability),

	askPowerLimit:  detail("nvmlDeviceGetEnforcedPowerLimit", inTurn, sample.GPUPowerLimit),
	askFan:         detail("nvmlDeviceGetFanSpeed", inTurn, sample.GPUFan),
	askCorrected:   detail("nvmlDeviceGetTotalEccErrors", inTurn, sample.GPUErrorsCorrected),
	askUncorrected: detail("nvmlDeviceGetTotalEccErrors", inTurn, sample.GPUErrorsUncorrected),
	askReplays:     detail("nvmlDeviceGetPcieReplayCounter", inTurn, sample.GPUPCIeReplays),
	askRows:        detail("nvmlDeviceGetRemappedRows", inTurn, sample.GPURowsRemapped, sample.GPURepairPending, sample.GPURepairFailed),
	askPages:       detail("nvmlDeviceGetRetiredPages", inTurn, sample.GPUPagesRetired, sample.GPURepairPending),

	askSlowdown:       detail("nvmlDeviceGetTemperatureThreshold", once, sample.GPUSlowdownAt),
	askShutdown:       detail("nvmlDeviceGetTemperatureThreshold", once, sample.GPUShutdownAt),
	askMemorySlowdown: detail("nvmlDeviceGetTemperatureThreshold", once, sample.GPUMemorySlowdownAt),
}

func detail(call string, each cadence, tells ...sample.GPUQuantity) plan {
	return plan{call: call, each: each, tells: tells}
}

func violation(q sample.GPUQuantity) plan {
	return plan{call: "nvmlDeviceGetViolationStatus", each: eachSecond, spare: true, tells: []sample.GPUQuantity{q}}
}

func (q question) String() string { return plans[q].call }
