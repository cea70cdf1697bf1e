package window

import (
	"slices"
	"time"
)

// Missing is something that a report lacks, and why its verdict says less than it could.
type Missing struct {
	Reason Reason
	Device string        // the GPU or disk, where Reason is about one
	Time   time.Duration // how much of the window, for ReadingGap, OpenEnds and NotFollowed
}

// Reason is why something is missing.
type Reason string

// Without a ledger there is nothing to judge.
const (
	UnknownGPU Reason = "unknown_gpu" // this machine has no GPU with the announced id Device
	NoReadings Reason = "no_readings" // the window is older than the history, or too short for a reading
)

// This makes a ledger that of the whole machine.
const (
	ClientGone Reason = "client_gone" // the client that announced the window, without a process, ended before it
)

// With these there is a ledger, but no verdict.
const (
	GPULost     Reason = "gpu_lost"     // Device could not be read for a part of the window
	ReadingGap  Reason = "reading_gap"  // for Time of the window there are no readings
	HiddenReads Reason = "hidden_reads" // the job's reads are not readable: its waiting cannot be separated from others'
	TooShort    Reason = "too_short"    // the window is too short for the resolution of the readings
	OpenEnds    Reason = "open_ends"    // the start and end of a detected window are open by Time, both together
	NotFollowed Reason = "not_followed" // for Time after the start of a detected window its job had no reading yet
)

// These limit what a verdict means.
const (
	NoIOPressure   Reason = "no_io_pressure"   // the kernel reports no I/O pressure
	HiddenRemoteIO Reason = "hidden_remote_io" // unexplained idle time may be waiting for a network or FUSE file system
	DiskReset      Reason = "disk_reset"       // Device was added or removed, or its counters restarted
)

// Lacks reports whether something is missing for a reason.
func (j *Judgement) Lacks(reason Reason) bool {
	return slices.ContainsFunc(j.Missing, func(m Missing) bool { return m.Reason == reason })
}

// MissingDevices lists the devices of a reason.
func (j *Judgement) MissingDevices(reason Reason) (devices []string) {
	for _, m := range j.Missing {
		if m.Reason == reason {
			devices = append(devices, m.Device)
		}
	}
	return devices
}
