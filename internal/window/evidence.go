package window

import "time"

// Evidence is what a ledger was made from.
type Evidence string

// The kinds of evidence, from the best to the weakest.
const (
	FromSchedule Evidence = "schedule" // every change of state of the job's threads
	FromPressure Evidence = "pressure" // pressure stall information, disk queues and CPU times
	FromSamples  Evidence = "sampled"  // the same without pressure stall information
)

// evidence notes what the ledger was made from.
func (b *builder) evidence() {
	b.Evidence, b.NoSchedule = FromPressure, b.machine.NoSchedule
	if !b.machine.Pressure {
		b.Evidence = FromSamples
	}
}

// OtherReason is a part of the time that is other. The names say what was waited for.
type OtherReason struct {
	Kind OtherKind
	Name string // "receiving from 10.0.0.7:443 over TCP", "futex, held by thread feeder"
	Time time.Duration
}

// OtherKind is the kind of an OtherReason.
type OtherKind string

// The kinds of reasons.
const (
	OtherGPU     OtherKind = "gpu_driver"
	OtherNetwork OtherKind = "network"
	OtherPipe    OtherKind = "pipe"
	OtherLock    OtherKind = "lock"
	OtherTimer   OtherKind = "timer"
	OtherChild   OtherKind = "child_process"
	OtherSteal   OtherKind = "steal"
	OtherEvent   OtherKind = "event"
)

// WhatIf holds the speed-ups that a replay of the window's schedule predicts. 1 means no change, 0 that it is unknown.
type WhatIf struct {
	NoStorage float64 // storage without waiting; also Report.Speedup
	Low, High float64 // the range of NoStorage
	Workers   float64 // twice as many threads or processes that read ahead
	GPU       float64 // a GPU twice as fast
}
