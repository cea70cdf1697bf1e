// Package quantile finds quantiles of many values in little memory.
package quantile

import (
	"maps"
	"math"
	"slices"
)

// PerOctave is the number of buckets between a value and its double: a quantile is exact to 1 %.
const PerOctave = 64

// zeroBucket holds what is not above 0.
const zeroBucket = math.MinInt32

// Histogram counts values by their size: it does not grow with their number. The zero value is ready.
type Histogram struct {
	N      uint64         // number of values
	counts map[int]uint64 // by the bucket's number
}

// Add counts a finite value.
func (h *Histogram) Add(v float64) {
	bucket := zeroBucket
	if v > 0 {
		bucket = int(math.Floor(math.Log2(v) * PerOctave))
	}
	h.count(bucket, 1)
}

func (h *Histogram) count(bucket int, n uint64) {
	if h.counts == nil {
		h.counts = map[int]uint64{}
	}
	h.counts[bucket] += n
	h.N += n
}

// Merge adds the values of another histogram.
func (h *Histogram) Merge(other *Histogram) {
	for bucket, n := range other.counts {
		h.count(bucket, n)
	}
}

// Quantile is the value that this share of the values did not exceed (nearest rank), as the middle of its bucket; 0
// without values.
func (h *Histogram) Quantile(share float64) float64 {
	rank := max(1, min(h.N, uint64(math.Ceil(share*float64(h.N)))))
	var seen uint64
	for _, bucket := range slices.Sorted(maps.Keys(h.counts)) {
		switch seen += h.counts[bucket]; {
		case seen < rank:
		case bucket == zeroBucket:
			return 0
		default:
			return math.Exp2((float64(bucket) + 0.5) / PerOctave)
		}
	}
	return 0
}
