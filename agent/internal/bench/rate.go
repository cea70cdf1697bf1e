package bench

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/agent/internal/quantile"
)

// parts is the number of equal slices of a step.
const parts = 10

// tally counts the reads of one reader in a step.
type tally struct {
	times quantile.Histogram // of reads, in seconds
	parts [parts]uint64      // reads that ended in each part of the step
	bytes uint64
	last  time.Duration // end of the last read, since the step began
	err   error
}

// took counts a read that lasted length and ended at a time since the step began.
func (t *tally) took(at, length, step time.Duration, bytes int) {
	t.times.Add(length.Seconds())
	if part := int(at * parts / step); part < parts {
		t.parts[part]++
	}
	t.bytes += uint64(bytes)
	t.last = at
}

func (t *tally) merge(other *tally) {
	t.times.Merge(&other.times)
	for i, n := range other.parts {
		t.parts[i] += n
	}
	t.bytes += other.bytes
	t.last = max(t.last, other.last)
	if t.err == nil {
		t.err = other.err
	}
}

// minReads is the minimum mean number of reads in a part. With fewer, the parts vary too much to be compared.
const minReads = 10

// rate returns reads per second: the mean of the parts without the two fastest and the two slowest. With few reads, or
// after a step that was cut short, it is all reads over the time until the last one.
func (t *tally) rate(step time.Duration) float64 {
	var within uint64
	for _, n := range t.parts {
		within += n
	}
	if t.last < step*9/10 || within < minReads*parts {
		if t.last <= 0 {
			return 0
		}
		return float64(t.times.N) / t.last.Seconds()
	}
	sorted := slices.Sorted(slices.Values(t.parts[:]))
	const cut = 2
	var middle uint64
	for _, n := range sorted[cut : parts-cut] {
		middle += n
	}
	return float64(middle) / ((parts - 2*cut) * (step.Seconds() / parts))
}
