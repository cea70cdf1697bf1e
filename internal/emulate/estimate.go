package emulate

import (
	"slices"
	"time"
)

const parts = 8

// typicalMean is the median of the means of eight consecutive parts. An epoch's length follows the mean: a median
// alone would leave out the slow reads that every epoch meets. But the plain mean of so few reads would follow a
// single hiccup; here it spoils one part of eight.
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

// settle is the time of a cold record that an epoch will see once its compute time is fitted to just that, from two
// measurements: alone without any compute, and paused with compute after each record on average. A disk has either a
// latency, and then the pause changes nothing; or it is limited to so many reads a second (a cloud volume, a cgroup),
// and then each pause earns reads that come at once, as far as a second off the reading for each second of pause. In
// between the two, and a little beyond, the time is taken as linear in the pause.
func settle(alone, paused, compute time.Duration) time.Duration {
	earned := 0.0 // per second of pause
	if compute > 0 {
		earned = min(max(float64(alone-paused)/float64(compute), 0), 1)
	}
	const ratio = readPerTenths / 10.0 // an epoch's reading : its compute
	fitted := (float64(paused) + earned*float64(compute)) / (ratio + earned)
	return time.Duration(ratio * fitted)
}
