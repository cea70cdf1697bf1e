package sample

import "time"

// DriverUse counts the calls to the GPU driver since the program started. It comes with GPUs, in the same rows as
// GPUDetails.
type DriverUse struct {
	Calls []DriverCall `json:"calls"` // by name, without unused functions
	// Fields holds the latencyUsec of each value of nvmlDeviceGetFieldValues, by name. They are parts of that call.
	Fields   []DriverCall `json:"fields,omitempty"`
	Dropped  uint64       `json:"dropped"`  // values outside their physical range
	Sessions uint64       `json:"sessions"` // with the driver: more than one means that the driver was unloaded
}

// DriverCall is the use of one function of the driver.
type DriverCall struct {
	Name    string        `json:"name"`    // "nvmlDeviceGetSamples"
	Count   uint64        `json:"count"`   // calls that returned
	Time    time.Duration `json:"time"`    // sum over calls
	Longest time.Duration `json:"longest"` // of one call; not a counter
}
