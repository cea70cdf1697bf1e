package gpu

import (
	"math"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	mostPower     = 10_000               // watts; no GPU takes as much
	mostTime      = 30 * 365 * 24 * 3600 // seconds; thirty years
	mostEnergy    = mostPower * mostTime // joules
	mostBytes     = 1 << 60              // of a counter
	mostTraffic   = 8e12                 // bytes a second
	mostClock     = 20e9                 // hertz
	mostErrors    = 1 << 48
	mostErrorRate = 1e6     // errors a second; a bad chip corrects thousands
	mostReplaced  = 1 << 20 // rows or pages, of which a GPU can replace some hundreds
	mostMemory    = 1 << 50 // bytes
	coldest       = -50     // degrees Celsius
	hottest       = 200     // degrees Celsius
	overThrottle  = 1.5     // seconds of throttling in a second: the driver counts on a clock of its own
	overRatio     = 1.02    // GPM divides two counters that are not read at once
)

// span is the physical range of a quantity, and of a counter's growth in a second where that is limited.
type span struct{ least, most, growth float64 }

// ranges are those of what a GPU tells of itself.
var ranges = [sample.GPUQuantities]span{
	sample.GPUEncoder:              {0, 1, 0},
	sample.GPUDecoder:              {0, 1, 0},
	sample.GPUController:           {0, 1, 0},
	sample.GPUSMActive:             {0, overRatio, 0},
	sample.GPUSMOccupancy:          {0, overRatio, 0},
	sample.GPUTensorActive:         {0, overRatio, 0},
	sample.GPUDRAMActive:           {0, overRatio, 0},
	sample.GPUPCIeReceived:         {0, mostBytes, mostTraffic},
	sample.GPUPCIeSent:             {0, mostBytes, mostTraffic},
	sample.GPUPCIeReceiveRate:      {0, mostTraffic, 0},
	sample.GPUPCIeSendRate:         {0, mostTraffic, 0},
	sample.GPUNVLinkReceived:       {0, mostBytes, mostTraffic},
	sample.GPUNVLinkSent:           {0, mostBytes, mostTraffic},
	sample.GPUPowerLimit:           {0, mostPower, 0},
	sample.GPUTemperatureMemory:    {coldest, hottest, 0},
	sample.GPUSlowdownAt:           {0, hottest, 0},
	sample.GPUShutdownAt:           {0, hottest, 0},
	sample.GPUMemorySlowdownAt:     {0, hottest, 0},
	sample.GPUFan:                  {0, 2, 0}, // nvml.h: it may exceed 100 %
	sample.GPUClockSM:              {0, mostClock, 0},
	sample.GPUClockMemory:          {0, mostClock, 0},
	sample.GPUClockGraphics:        {0, mostClock, 0},
	sample.GPUClockVideo:           {0, mostClock, 0},
	sample.GPUThrottledPower:       {0, mostTime, overThrottle},
	sample.GPUThrottledThermal:     {0, mostTime, overThrottle},
	sample.GPUThrottledHWThermal:   {0, mostTime, overThrottle},
	sample.GPUThrottledPowerBrake:  {0, mostTime, overThrottle},
	sample.GPUThrottledSyncBoost:   {0, mostTime, overThrottle},
	sample.GPUThrottledBoard:       {0, mostTime, overThrottle},
	sample.GPUThrottledReliability: {0, mostTime, overThrottle},
	sample.GPUErrorsCorrected:      {0, mostErrors, mostErrorRate},
	sample.GPUErrorsUncorrected:    {0, mostErrors, mostErrorRate},
	sample.GPUPCIeReplays:          {0, math.MaxUint32, mostErrorRate},
	sample.GPURowsRemapped:         {0, mostReplaced, 0},
	sample.GPUPagesRetired:         {0, mostReplaced, 0},
	sample.GPURepairPending:        {0, 1, 0},
	sample.GPURepairFailed:         {0, 1, 0},
	sample.GPUMemoryReserved:       {0, mostMemory, 0},
}

// holds says whether a value can be. What is not a number cannot.
func (s span) holds(value float64) bool { return value >= s.least && value <= s.most }

func possibleLink(width, generation int) bool {
	return width > 0 && width <= 64 && generation > 0 && generation <= 16
}
