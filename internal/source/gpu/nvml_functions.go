//go:build linux && cgo

package gpu

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// function is a function of the library.
type function int

const (
	fnInit function = iota
	fnShutdown
	fnCount
	fnHandle
	fnUUID
	fnName
	fnDriverVersion
	fnLibraryVersion
	fnMigMode
	fnMigCount
	fnMigHandle
	fnSamples
	fnUtilizationRates
	fnMemoryV2
	fnMemory
	fnTemperature
	fnPower
	fnEnergy
	fnLinkWidth
	fnLinkGeneration
	fnMaxLinkWidth
	fnMaxLinkGeneration
	fnComputeProcesses
	fnGraphicsProcesses
	fnFieldValues
	fnEncoder
	fnDecoder
	fnClock
	fnViolation
	fnClockEventReasons
	fnClockThrottleReasons
	fnPowerLimit
	fnFan
	fnECC
	fnReplays
	fnRemappedRows
	fnRetiredPages
	fnRetiredPagesPending
	fnThreshold
	fnMargin
	fnGPMSupport
	fnGPMAlloc
	fnGPMFree
	fnGPMSample
	fnGPMMIGSample
	fnGPUInstance
	fnGPMMetrics
	fnEventTypes
	fnEventRegister
	fnEventCreate
	fnEventWait
	fnEventFree

	numFunctions
)

// functionNames has each function's symbols. go-nvml calls the newest version, which comes first, that the library has.
var functionNames = [numFunctions][]string{
	fnInit:              {"nvmlInit_v2", "nvmlInit"},
	fnShutdown:          {"nvmlShutdown"},
	fnCount:             {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"},
	fnHandle:            {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"},
	fnUUID:              {"nvmlDeviceGetUUID"},
	fnName:              {"nvmlDeviceGetName"},
	fnDriverVersion:     {"nvmlSystemGetDriverVersion"},
	fnLibraryVersion:    {"nvmlSystemGetNVMLVersion"},
	fnMigMode:           {"nvmlDeviceGetMigMode"},
	fnMigCount:          {"nvmlDeviceGetMaxMigDeviceCount"},
	fnMigHandle:         {"nvmlDeviceGetMigDeviceHandleByIndex"},
	fnSamples:           {"nvmlDeviceGetSamples"},
	fnUtilizationRates:  {"nvmlDeviceGetUtilizationRates"},
	fnMemoryV2:          {"nvmlDeviceGetMemoryInfo_v2"},
	fnMemory:            {"nvmlDeviceGetMemoryInfo"},
	fnTemperature:       {"nvmlDeviceGetTemperature"},
	fnPower:             {"nvmlDeviceGetPowerUsage"},
	fnEnergy:            {"nvmlDeviceGetTotalEnergyConsumption"},
	fnLinkWidth:         {"nvmlDeviceGetCurrPcieLinkWidth"},
	fnLinkGeneration:    {"nvmlDeviceGetCurrPcieLinkGeneration"},
	fnMaxLinkWidth:      {"nvmlDeviceGetMaxPcieLinkWidth"},
	fnMaxLinkGeneration: {"nvmlDeviceGetMaxPcieLinkGeneration"},
	fnComputeProcesses: {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
		"nvmlDeviceGetComputeRunningProcesses"},
	fnGraphicsProcesses: {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2",
		"nvmlDeviceGetGraphicsRunningProcesses"},
	fnFieldValues:          {"nvmlDeviceGetFieldValues"},
	fnEncoder:              {"nvmlDeviceGetEncoderUtilization"},
	fnDecoder:              {"nvmlDeviceGetDecoderUtilization"},
	fnClock:                {"nvmlDeviceGetClockInfo"},
	fnViolation:            {"nvmlDeviceGetViolationStatus"},
	fnClockEventReasons:    {"nvmlDeviceGetCurrentClocksEventReasons"},
	fnClockThrottleReasons: {"nvmlDeviceGetCurrentClocksThrottleReasons"},
	fnPowerLimit:           {"nvmlDeviceGetEnforcedPowerLimit"},
	fnFan:                  {"nvmlDeviceGetFanSpeed"},
	fnECC:                  {"nvmlDeviceGetTotalEccErrors"},
	fnReplays:              {"nvmlDeviceGetPcieReplayCounter"},
	fnRemappedRows:         {"nvmlDeviceGetRemappedRows"},
	fnRetiredPages:         {"nvmlDeviceGetRetiredPages"},
	fnRetiredPagesPending:  {"nvmlDeviceGetRetiredPagesPendingStatus"},
	fnThreshold:            {"nvmlDeviceGetTemperatureThreshold"},
	fnMargin:               {"nvmlDeviceGetMarginTemperature"},
	fnGPMSupport:           {"nvmlGpmQueryDeviceSupport"},
	fnGPMAlloc:             {"nvmlGpmSampleAlloc"},
	fnGPMFree:              {"nvmlGpmSampleFree"},
	fnGPMSample:            {"nvmlGpmSampleGet"},
	fnGPMMIGSample:         {"nvmlGpmMigSampleGet"},
	fnGPUInstance:          {"nvmlDeviceGetGpuInstanceId"},
	fnGPMMetrics:           {"nvmlGpmMetricsGet"},
	fnEventTypes:           {"nvmlDeviceGetSupportedEventTypes"},
	fnEventRegister:        {"nvmlDeviceRegisterEvents"},
	fnEventCreate:          {"nvmlEventSetCreate"},
	fnEventWait:            {"nvmlEventSetWait_v2", "nvmlEventSetWait"},
	fnEventFree:            {"nvmlEventSetFree"},
}

// found is the result of looking up a function.
type found struct {
	known bool
	name  string // "" if the library lacks it
}

// find returns the symbol of a function in the library, or "".
func (l *library) find(f function) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := &l.found[f]; !at.known {
		at.known = true
		for _, name := range functionNames[f] {
			if l.lookup(name) == nil {
				at.name = name
				break
			}
		}
	}
	return l.found[f].name
}

// has reports whether the library has all of these functions.
func (l *library) has(list ...function) bool {
	for _, f := range list {
		if l.find(f) == "" {
			return false
		}
	}
	return true
}

// call makes every call of the driver. It does not call a function that the library lacks, because that would end the
// process, and it measures how long the call takes.
func (l *library) call(f function, do func() nvml.Return) error {
	name := l.find(f)
	if name == "" {
		return codeFunctionNotFound
	}
	began := time.Now()
	ret := do()
	l.calls.add(name, time.Since(began))
	return errorOf(ret)
}

// get makes a call that returns one value.
func get[T any](l *library, f function, do func() (T, nvml.Return)) (value T, err error) {
	err = l.call(f, func() (ret nvml.Return) {
		value, ret = do()
		return ret
	})
	return value, err
}
