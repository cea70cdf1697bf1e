package process

import (
	"math"
	"time"
)

// counts are the counters of a process that its parent inherits at its end: when the parent waits for it, the
// kernel adds all of them to the parent's own.
type counts [6]uint64

const (
	cpuTicks  = iota // user and system
	faults           // minor page faults: they are only here to tell whether a parent has inherited
	readBytes        // these three are from /proc/PID/io
	readChars
	writeBytes
	sysTicks // of cpuTicks, system
)

// plus and minus stop at the ends of the range, so that nothing that a file says can turn a counter over.
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

// covers tells whether c is at least d in everything.
func (c counts) covers(d counts) bool {
	for i := range c {
		if c[i] < d[i] {
			return false
		}
	}
	return true
}

// highest is the larger of both in each counter.
func (c counts) highest(d counts) counts {
	for i := range c {
		c[i] = max(c[i], d[i])
	}
	return c
}

// splitIO parts the bytes from the rest.
func (c counts) splitIO() (rest, io counts) {
	io.takeBytes(c)
	return c.minus(io), io
}

// takeBytes makes c's bytes those of d.
func (c *counts) takeBytes(d counts) { copy(c[readBytes:writeBytes+1], d[readBytes:writeBytes+1]) }

func duration(ticks uint64) time.Duration {
	return time.Duration(min(ticks, math.MaxInt64/uint64(tick))) * tick
}
