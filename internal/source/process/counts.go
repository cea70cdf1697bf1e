package process

import (
	"math"
	"time"
)

// counts are the counters of a process that its parent inherits: when the parent waits for the ended process, the
// kernel adds them to the parent's own.
type counts [6]uint64

const (
	cpuTicks  = iota // user and system time
	faults           // minor page faults, which show whether a parent has inherited
	readBytes        // this and the next two are from /proc/PID/io
	readChars
	writeBytes
	sysTicks // part of cpuTicks, in the kernel
)

// plus and minus saturate, so that no text of a file can make a counter overflow.
func (c counts) plus(d counts) counts {
	for i := range c {
		if c[i] += d[i]; c[i] < d[i] {
			c[i] = math.MaxUint64
		}
	}
	return c
}

func (c counts) minus(d counts) counts {
	for i := range c {
		c[i] -= min(c[i], d[i])
	}
	return c
}

// covers reports whether each counter of c is at least that of d.
func (c counts) covers(d counts) bool {
	for i := range c {
		if c[i] < d[i] {
			return false
		}
	}
	return true
}

// highest returns the maximum of each counter.
func (c counts) highest(d counts) counts {
	for i := range c {
		c[i] = max(c[i], d[i])
	}
	return c
}

// splitIO separates the bytes from the rest.
func (c counts) splitIO() (rest, io counts) {
	io.takeBytes(c)
	return c.minus(io), io
}

// takeBytes copies the bytes of d.
func (c *counts) takeBytes(d counts) { copy(c[readBytes:writeBytes+1], d[readBytes:writeBytes+1]) }

func duration(ticks uint64) time.Duration {
	return time.Duration(min(ticks, math.MaxInt64/uint64(Tick))) * Tick
}
