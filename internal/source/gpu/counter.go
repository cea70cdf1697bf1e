package gpu

import (
	"math"
	"time"
)

const (
	wrap32 = 1 << 32 // where the driver's narrow counters begin again

	// mostRefused is after how many values in a row that grew too much the counter is taken to have been set anew.
	maxRejected = 3
)

// widened undoes the wraps of a counter of 32 bits. nvml.h says of the PCIe counters that they can wrap, and not where: the
// type of the value tells it, or that a value goes back which never was beyond 32 bits. It lives as long as a session with
// the driver, in which a counter is not set anew.
type unwrapper struct {
	last, wraps float64
	known       bool
	wide        bool // it was beyond 32 bits
}

// add takes the newest value. grown is by how much it should have grown as something else tells, or 0 where nothing
// does: a busy PCIe link fills 32 bits several times a second. A wide counter that goes back begins again.
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

// counter refuses values to which a counter cannot have grown.
type counter struct {
	value    float64
	at       time.Duration // 0 for never
	rejected int
}

// grew says whether the counter can be at a value, when it grows by at most so much a second. It may always go back.
func (c *counter) accept(value float64, at time.Duration, maxRate float64) bool {
	if c.at != 0 && maxRate > 0 && value-c.value > maxRate*((at-c.at).Seconds()+1) && c.rejected < maxRejected {
		c.rejected++
		return false
	}
	c.value, c.at, c.rejected = value, at, 0
	return true
}
