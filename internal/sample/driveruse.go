package sample

import "time"

// DriverUse is what asking the GPUs' driver has cost since the program began: all counters. It comes with GPUs, from the
// same rows as GPUDetails.
type DriverUse struct {
	Calls    []DriverCall `json:"calls"`            // by name; those that were made
	Fields   []DriverCall `json:"fields,omitempty"` // by name; the latencyUsec of each value of nvmlDeviceGetFieldValues: parts of that call
	Dropped  uint64       `json:"dropped"`          // values outside their physical range, which were left out
	Sessions uint64       `json:"sessions"`         // that were begun with the driver: more than one means that it went away
}

// DriverCall is the use of one function of the driver.
type DriverCall struct {
	Name    string        `json:"name"`    // "nvmlDeviceGetSamples"
	Count   uint64        `json:"count"`   // calls that returned
	Time    time.Duration `json:"time"`    // inside them
	Longest time.Duration `json:"longest"` // of one of them; no counter
}
