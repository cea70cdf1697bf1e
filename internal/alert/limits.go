package alert

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// LimitsOf has the limits of each kind except IOStorm. docs/events.md has the same numbers. It is read-only.
var LimitsOf = map[Kind]Limits{
	// Degrees Celsius above the temperature at which the GPU slows down, or above defaultSlowdown if it reports none.
	GPUHot: {
		Raise: -hotMargin, Clear: -hotMargin - 5,
		RaiseAfter: 10 * time.Second, ClearAfter: 30 * time.Second, MinInterval: time.Minute,
	},
	// The share of the last 30 s with reduced clocks.
	GPUThrottled: {Raise: 0.2, Clear: 0.05, ClearAfter: 30 * time.Second, MinInterval: time.Minute},
	// 1 while the GPU cannot be read.
	GPULost: {Raise: 1, ClearAfter: 10 * time.Second, MinInterval: time.Minute},
	// 1 in an evaluation with new XIDs of the code.
	GPUError: {Raise: 1, ClearAfter: 10 * time.Minute, MinInterval: time.Minute},
	// 1 while the drive should be replaced. Drives are read every ten minutes.
	DiskFailing: {Raise: 1, ClearAfter: 30 * time.Minute, MinInterval: 30 * time.Minute},
	// 1 while the drive is missing.
	DiskVanished: {Raise: 1, ClearAfter: time.Minute, MinInterval: 10 * time.Minute},
	// The saturation of the last 60 s; see disk.go.
	DiskSaturated: {Raise: 1, Clear: 0.6, ClearAfter: time.Minute, MinInterval: time.Minute},
	// 1 while the part fails.
	AgentDegraded: {Raise: 1, RaiseAfter: time.Minute, ClearAfter: time.Minute, MinInterval: time.Minute},
}

// Temperatures in degrees Celsius.
const (
	hotMargin       = 3.0 // a GPU is hot this far below its slowdown temperature
	defaultSlowdown = 88  // for a GPU that reports no limit, so that it is hot at 85
	maxTemperature  = 150 // readings above are garbage: a failing GPU may report any number
)

// stormTimeout is the time without slow windows after which an I/O storm has ended.
const stormTimeout = time.Minute

// throttleReasons are the reasons for reduced clocks that point to a fault of cooling or power supply. The power cap is
// left out: a busy GPU runs at its power cap.
var throttleReasons = [...]sample.GPUQuantity{
	sample.GPUThrottledThermal, sample.GPUThrottledHWThermal, sample.GPUThrottledPowerBrake,
}

// applicationXIDs are the XIDs that a program causes, rather than the hardware (NVIDIA's table of XID errors).
var applicationXIDs = [...]int{13, 31, 43, 45}
