// Package alert detects conditions of the machine, such as a hot GPU or a failing drive. It returns one event when a
// condition begins and one when it has ended.
package alert

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Kind is the kind of a condition. LimitsOf has the limits of each.
type Kind string

const (
	GPUHot        Kind = "gpu_hot"
	GPUThrottled  Kind = "gpu_throttled"
	GPULost       Kind = "gpu_lost"
	GPUError      Kind = "gpu_error" // an XID, one condition for each code
	DiskFailing   Kind = "disk_failing"
	DiskVanished  Kind = "disk_vanished"
	DiskSaturated Kind = "disk_saturated"
	AgentDegraded Kind = "agent_degraded"
	IOStorm       Kind = "io_storm" // its end only: the report of the window that showed the storm carries its beginning
)

// Event is the beginning or the end of a condition.
type Event struct {
	Kind     Kind
	Resolved bool      // the condition has ended
	At       time.Time // when it began or ended, which precedes the event by the hold time of the limits
	Began    time.Time // of a resolved condition: when it began
	Severe   bool      // an operator must act, rather than look; a resolved event has the value of its beginning
	Message  string    // one sentence with names that devices report: it may hold any byte

	GPU      *sample.GPU   // nil if the condition is not one of a GPU
	Drive    *sample.Drive // nil if the condition is not one of a drive
	Disk     string        // system.device.name, or ""
	Part     string        // the part of this program that fails, or ""
	Memory   bool          // Value is the temperature of the GPU's memory
	Reason   string        // why the clocks are low, as named by sample.GPUQuantity; why a part of the program fails
	Code     int           // XID code
	Count    uint64        // XIDs since the previous event; windows in a storm
	Lost     bool          // the driver reports the GPU as lost; false if the driver does not answer
	HasValue bool          // Value and Limit are set
	Value    float64       // the measured value, in the unit of Limit
	Limit    float64       // the value at which the condition begins
}
