package gpu

import (
	"math"

	"github.com/stallspan/stallspan/internal/sample"
)

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
