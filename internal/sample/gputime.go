package sample

import (
	"slices"
	"time"
)

// GPUTime divides the time of one GPU, or of one job without a GPU. The parts are counters. Those of all rows of a GPU
// add up to the time since it was first seen.
type GPUTime struct {
	GPU    string `json:"gpu,omitempty"`    // GPU.ID; "" for a job without a GPU
	Job    string `json:"job,omitempty"`    // "" for the time in which no followed job held memory of the GPU
	Began  Stamp  `json:"began"`            // when all counters were 0
	Until  Stamp  `json:"until"`            // up to which they count
	Held   bool   `json:"held,omitempty"`   // the job holds memory of the GPU, or runs without one
	Shared bool   `json:"shared,omitempty"` // some of the time was divided among jobs

	Busy    time.Duration `json:"busy"`    // the GPU worked
	Storage time.Duration `json:"storage"` // it was idle while the job waited for storage
	CPU     time.Duration `json:"cpu"`     // it was idle while the input pipeline used or waited for a CPU
	Other   time.Duration `json:"other"`   // it was idle for another reason
	Idle    time.Duration `json:"idle"`    // no process held memory of it
	// Allocated is how long the job held memory. Unlike the parts, it is not divided among jobs that share a GPU.
	Allocated time.Duration `json:"allocated"`
	// Gain is the time that instant storage would have saved. It may fall, and exceed Storage and CPU for a moment: see
	// history.LedgerGain and Saved.
	Gain time.Duration `json:"gain"`
	// Unused is the part of Other in times of five minutes and more in which the job held memory and the GPU did nothing.
	Unused time.Duration `json:"unused,omitempty"`
}

// Sum returns the sum of the parts.
func (g GPUTime) Sum() time.Duration { return g.Busy + g.Storage + g.CPU + g.Other + g.Idle }

// Saved is the time that instant storage would have saved of all of the row: at most Storage and CPU together.
func (g GPUTime) Saved() time.Duration { return max(0, min(g.Gain, g.Storage+g.CPU)) }

// JobName is who a job is, as seen from outside of it.
type JobName struct {
	ID         string      `json:"id"`  // Job.ID
	PID        int         `json:"pid"` // its first process; 0 if unknown
	Name       string      `json:"name,omitempty"`
	User       string      `json:"user,omitempty"`
	Client     string      `json:"client,omitempty"`     // whose it is, as in window.Window; "" for this program's user
	Attributes []Attribute `json:"attributes,omitempty"` // sorted by key
}

// Equal reports whether both say the same.
func (n JobName) Equal(other JobName) bool {
	return n.ID == other.ID && n.PID == other.PID && n.Name == other.Name && n.User == other.User &&
		n.Client == other.Client && slices.Equal(n.Attributes, other.Attributes)
}

// Attribute is an attribute of OpenTelemetry with a text as value.
type Attribute struct {
	Key     string `json:"key"`
	Value   string `json:"value"`
	Claimed bool   `json:"claimed,omitempty"` // by the process or its user, and no other source knows it
}
