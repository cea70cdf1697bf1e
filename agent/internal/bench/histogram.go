package bench

import (
	"math/bits"
	"time"
)

// A histogram has 64 buckets for each power of two of nanoseconds: values are exact to 1/64, up to 2^42 ns (over an
// hour).
const (
	fine    = 6
	coarse  = 42
	buckets = (coarse - fine + 1) << fine
)

// histogram counts times. Its size is fixed. The zero value is ready.
type histogram struct {
	counts [buckets]uint64
	n      uint64
}

// bucket is the bucket of a time.
func bucket(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < 1<<fine {
		return int(v)
	}
	shift := bits.Len64(v) - fine - 1
	return min((shift+1)<<fine+int(v>>shift)-1<<fine, buckets-1)
}

// bounds are the minimum of a bucket and of the next one.
func bounds(bucket int) (from, to time.Duration) {
	if bucket < 1<<fine {
		return time.Duration(bucket), time.Duration(bucket + 1)
	}
	shift := bucket>>fine - 1
	from = time.Duration(bucket&(1<<fine-1)+1<<fine) << shift
	return from, from + 1<<shift
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucket(d)]++
	h.n++
}

func (h *histogram) merge(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.n += other.n
}

// quantile is the time that this share of the reads did not exceed (nearest rank), in seconds, as the middle of its
// bucket; 0 without reads.
func (h *histogram) quantile(share float64) float64 {
	rank := uint64(share * float64(h.n))
	if float64(rank) < share*float64(h.n) || rank == 0 {
		rank++
	}
	var seen uint64
	for i, n := range h.counts {
		if seen += n; n > 0 && seen >= min(rank, h.n) {
			from, to := bounds(i)
			return (from.Seconds() + (to - 1).Seconds()) / 2
		}
	}
	return 0
}
