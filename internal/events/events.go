// Package events notices what happens to the machine: each condition is told once when it begins and once when it is over.
package events

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Kind is what happens. Table has the limits of each.
type Kind string

const (
	GPUHot        Kind = "gpu_hot"
	GPUThrottled  Kind = "gpu_throttled"
	GPULost       Kind = "gpu_lost"
	GPUError      Kind = "gpu_error" // an XID, by its code
	DiskFailing   Kind = "disk_failing"
	DiskVanished  Kind = "disk_vanished"
	DiskSaturated Kind = "disk_saturated"
	AgentDegraded Kind = "agent_degraded"
	IOStorm       Kind = "io_storm" // only that it is over: the report of the window that showed it says that it began
)

// Event is a condition that has begun, or is over.
type Event struct {
	Kind     Kind
	Resolved bool
	At       time.Time // when it began, or was over: before it was told, by as much as makes sure of it
	Began    time.Time // of one that is over, when it had begun
	Severe   bool      // somebody has to act, not only to look; of one that is over, had to
	Says     string    // one sentence, from names that the devices gave: it may hold anything

	GPU     *sample.GPU   // whose it is, nil where it is no GPU's
	Drive   *sample.Drive // nil where it is no drive's
	Disk    string        // system.device.name, "" where it is no disk's
	Part    string        // of this program, "" where it is none's
	Memory  bool          // the temperature is that of the GPU's memory
	Reason  string        // why the clocks are low, as sample.GPUQuantity calls it; why a part of the program fails
	Code    int           // of an XID
	Count   uint64        // how many XIDs there were since the event before; the windows of a storm
	Lost    bool          // the GPU's driver says that it is gone, rather than not answering
	Value   float64       // what was measured, in the unit of Limit
	Limit   float64       // at which it began; 0 where nothing was measured
	Measure bool          // Value and Limit say something
}
