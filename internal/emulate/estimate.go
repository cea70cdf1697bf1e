package emulate

import (
	"slices"
	"time"
)

const parts = 8

// typicalMean returns the median of the means of eight consecutive parts. An epoch's length follows the mean: a median
// alone would omit the slow reads that occur in every epoch. But one hiccup would dominate a plain mean of so few
// reads; here it affects one part of eight.
func typicalMean(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	n := min(parts, len(times))
	means := make([]time.Duration, n)
	for i := range means {
		part := times[i*len(times)/n : (i+1)*len(times)/n]
		var sum time.Duration
		for _, t := range part {
			sum += t
		}
		means[i] = sum / time.Duration(len(part))
	}
	slices.Sort(means)
	low, high := means[(n-1)/2], means[n/2]
	return low + (high-low)/2
}

// coldTime estimates the time of a cold record in an epoch with a compute time that fits it, from two measurements:
// alone without compute, and paused with the given mean compute after each record. If the disk has a latency, the pause
// changes nothing. If it is limited to a rate of reads (a cloud volume, a cgroup), each pause earns reads that return
// at once: up to one second less reading per second of pause. In between, and slightly beyond, the time is taken as
// linear in the pause.
func coldTime(alone, paused, compute time.Duration) time.Duration {
	earned := 0.0 // per second of pause
	if compute > 0 {
		earned = min(max(float64(alone-paused)/float64(compute), 0), 1)
	}
	const ratio = readPerTenths / 10.0 // ratio of an epoch's reading to its compute
	fitted := (float64(paused) + earned*float64(compute)) / (ratio + earned)
	return time.Duration(ratio * fitted)
}
