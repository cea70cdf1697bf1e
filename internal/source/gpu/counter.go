package gpu

import (
	"math"
	"time"
)

const (
	wrap32 = 1 << 32 // 32-bit counters wrap here

	// maxRejected is the number of rejected values in a row after which the counter is assumed to have been reset.
	maxRejected = 3
)

// unwrapper unwraps a 32-bit counter. According to nvml.h the PCIe counters can wrap, but not where. A counter has 32
// bits if its type does, or if it decreases and never exceeded 32 bits. An unwrapper is valid for one session with the
// driver, in which counters are not reset.
type unwrapper struct {
	last, wraps float64
	known       bool
	wide        bool // it has exceeded 32 bits
}

// add returns the unwrapped value. grown is the expected growth from another source, or 0 if unknown: a busy PCIe link
// wraps 32 bits several times a second. A wide counter that decreases was reset.
func (w *unwrapper) add(raw float64, narrow bool, grown float64) float64 {
	if w.wide = !narrow && (w.wide || raw >= wrap32); w.wide {
		return raw
	}
	step := raw - w.last
	if w.known && step < 0 {
		step += wrap32
		w.wraps++
	}
	if w.known && (narrow || w.wraps > 0) {
		w.wraps += max(math.Round((grown-step)/wrap32), 0)
	}
	w.last, w.known = raw, true
	return raw + w.wraps*wrap32
}

// counter rejects values that a counter cannot have reached.
type counter struct {
	value    float64
	at       time.Duration // 0 for no value yet
	rejected int
}

// accept reports whether the counter can have the value, given its maximum rate a second. It may always decrease.
func (c *counter) accept(value float64, at time.Duration, maxRate float64) bool {
	if c.at != 0 && maxRate > 0 && value-c.value > maxRate*((at-c.at).Seconds()+1) && c.rejected < maxRejected {
		c.rejected++
		return false
	}
	c.value, c.at, c.rejected = value, at, 0
	return true
}
