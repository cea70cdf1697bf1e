package events

import (
	"time"

	"github.com/stallspan/stallspan/internal/condition"
	"github.com/stallspan/stallspan/internal/sample"
)

// Table has the limits of each kind but for IOStorm. docs/events.md has the same numbers. It is never changed.
var Table = map[Kind]condition.Limits{
	// Degrees Celsius above the temperature at which the chip slows down, or above usualSlowdown where it tells none.
	GPUHot: {Raise: -hotMargin, Clear: -hotMargin - 5, After: 10 * time.Second, Until: 30 * time.Second, Apart: time.Minute},
	// The share of the last 30 s in which the clocks were held down.
	GPUThrottled: {Raise: 0.2, Clear: 0.05, Until: 30 * time.Second, Apart: time.Minute},
	// 1 while it cannot be read.
	GPULost: {Raise: 1, Until: 10 * time.Second, Apart: time.Minute},
	// 1 at a look that sees new ones of the code.
	GPUError: {Raise: 1, Until: 10 * time.Minute, Apart: time.Minute},
	// The rank of the drive's status. Drives are asked every ten minutes.
	DiskFailing: {Raise: 1, Until: 30 * time.Minute, Apart: 30 * time.Minute},
	// 1 while it is not there.
	DiskVanished: {Raise: 1, Until: time.Minute, Apart: 10 * time.Minute},
	// How near it is to all that it can do, over the last 60 s; see disk.go.
	DiskSaturated: {Raise: 1, Clear: 0.6, Until: time.Minute, Apart: time.Minute},
	// 1 while it fails.
	AgentDegraded: {Raise: 1, After: time.Minute, Until: time.Minute, Apart: time.Minute},
}

// What the temperature is measured against, in degrees Celsius.
const (
	hotMargin     = 3.0 // this near to slowing down is hot
	usualSlowdown = 88  // so that a chip that tells no limit is hot at 85
	hottest       = 150 // and above it, a reading is broken: a GPU that fails may tell anything
)

// stormOver is the time after the last slow window of an I/O storm when it is over.
const stormOver = time.Minute

// throttled lists the reasons that hold the clocks down for a fault of cooling or power supply. The power cap does not
// count: to be held at it is what a busy GPU does.
var throttled = [...]sample.GPUQuantity{sample.GPUThrottledThermal, sample.GPUThrottledHWThermal, sample.GPUThrottledPowerBrake}

// ownFault lists the XIDs that a program brings about rather than the hardware (NVIDIA's table of XID errors).
var ownFault = [...]int{13, 31, 43, 45}
