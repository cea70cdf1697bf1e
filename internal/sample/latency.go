package sample

import (
	"math"
	"math/big"
	"sort"
	"time"
)

// Operation is what a block device does, by the names of disk.io.direction and further ones.
type Operation string

// The operations.
const (
	ReadOperation    Operation = "read"
	WriteOperation   Operation = "write"
	FlushOperation   Operation = "flush"   // of the cache of a device
	DiscardOperation Operation = "discard" // trim
)

// Latency is how long the operations of one kind took on one disk.
type Latency struct {
	Disk      string    `json:"disk"`
	Operation Operation `json:"operation"`
	Job       string    `json:"job,omitempty"` // Job.ID; "" for all programs together
	Began     Stamp     `json:"began"`         // from when on they are counted

	*LatencyHistogram // immutable
}

// The buckets are those of an OpenTelemetry exponential histogram in seconds. Each is 2^(1/4) times as wide as the one
// before it: a quantile is off by at most 9 %.
const (
	LatencyScale = 2
	// LatencyFirst is the index of bucket 0 at that scale: above 2^-20 s, which is 0.95 us.
	LatencyFirst = -20 << LatencyScale
	// LatencyBuckets reach to 2^10 s. The last one has what took longer, too.
	LatencyBuckets = 30 << LatencyScale
)

// LatencyHistogram counts operations by how long they took.
type LatencyHistogram struct {
	Sum    time.Duration `json:"sum"`
	Zero   uint64        `json:"zero,omitempty"`  // at most LatencyBound(0)
	First  int           `json:"first,omitempty"` // the bucket of Counts[0]
	Counts []uint64      `json:"counts,omitempty"`
}

// latencyBounds are LatencyBound of each bucket, and of the end of the last.
var latencyBounds = func() (all [LatencyBuckets + 1]time.Duration) {
	for i := range all {
		all[i] = exactBound(i)
	}
	return all
}()

// exactBound is the largest number of nanoseconds that is at most 2^((LatencyFirst+i)/4) s.
func exactBound(i int) time.Duration {
	// n^4 <= 10^36 * 2^(LatencyFirst+i): integers, because rounding would move a time to another bucket.
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(9<<LatencyScale), nil)
	if e := LatencyFirst + i; e >= 0 {
		power.Lsh(power, uint(e))
	} else {
		power.Rsh(power, uint(-e)) // of an integer compared with an integer, this loses nothing
	}
	return time.Duration(new(big.Int).Sqrt(power.Sqrt(power)).Int64())
}

// LatencyBound is the end of the bucket before bucket i, in whole nanoseconds: the longest time in it.
func LatencyBound(i int) time.Duration { return latencyBounds[i] }

// LatencyBucket returns the bucket of a time; -1 for zero.
func LatencyBucket(t time.Duration) int {
	return sort.Search(LatencyBuckets, func(i int) bool { return t <= latencyBounds[i] }) - 1
}

// Count is the number of operations.
func (h *LatencyHistogram) Count() uint64 {
	if h == nil {
		return 0
	}
	n := h.Zero
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Since returns what was counted after an earlier reading; nil for one that was counted from another start.
func (h *LatencyHistogram) Since(before *LatencyHistogram) *LatencyHistogram {
	if h == nil || before == nil {
		return h
	}
	if h.Zero < before.Zero || h.Sum < before.Sum || len(before.Counts) > 0 && (before.First < h.First ||
		before.First+len(before.Counts) > h.First+len(h.Counts)) {
		return nil
	}
	grown := &LatencyHistogram{Sum: h.Sum - before.Sum, Zero: h.Zero - before.Zero, First: h.First,
		Counts: append([]uint64(nil), h.Counts...)}
	for i, n := range before.Counts {
		c := &grown.Counts[before.First-h.First+i]
		if *c < n {
			return nil
		}
		*c -= n
	}
	grown.trim()
	return grown
}

// trim leaves out empty buckets at both ends.
func (h *LatencyHistogram) trim() {
	for len(h.Counts) > 0 && h.Counts[0] == 0 {
		h.Counts, h.First = h.Counts[1:], h.First+1
	}
	for len(h.Counts) > 0 && h.Counts[len(h.Counts)-1] == 0 {
		h.Counts = h.Counts[:len(h.Counts)-1]
	}
	if len(h.Counts) == 0 {
		h.Counts, h.First = nil, 0
	}
}

// NewLatencyHistogram takes the counts of all buckets, and keeps what is not empty.
func NewLatencyHistogram(sum time.Duration, zero uint64, all *[LatencyBuckets]uint64) *LatencyHistogram {
	h := &LatencyHistogram{Sum: sum, Zero: zero, Counts: all[:]}
	h.trim()
	h.Counts = append([]uint64(nil), h.Counts...)
	return h
}

// Quantile returns the time that a share of the operations took at most, interpolated within its bucket; 0 without
// operations.
func (h *LatencyHistogram) Quantile(q float64) time.Duration {
	count := h.Count()
	if count == 0 {
		return 0
	}
	rank := q * float64(count)
	if h.Zero > 0 && rank <= float64(h.Zero) {
		return latencyBounds[0]
	}
	below := float64(h.Zero)
	for i, n := range h.Counts {
		if n == 0 {
			continue
		}
		if below+float64(n) >= rank {
			low, high := latencyBounds[h.First+i].Seconds(), latencyBounds[h.First+i+1].Seconds()
			share := (rank - below) / float64(n)
			return time.Duration(low * math.Pow(high/low, share) * float64(time.Second))
		}
		below += float64(n)
	}
	return h.Max()
}

// Max returns the end of the highest bucket with an operation: none of them took longer, unless it is the last bucket.
func (h *LatencyHistogram) Max() time.Duration {
	switch {
	case h.Count() == 0:
		return 0
	case len(h.Counts) == 0:
		return latencyBounds[0]
	}
	return latencyBounds[h.First+len(h.Counts)]
}

// Valid reports whether a histogram that came from elsewhere has possible numbers.
func (h *LatencyHistogram) Valid() bool {
	return h != nil && h.Sum >= 0 && h.First >= 0 && h.First <= LatencyBuckets && len(h.Counts) <= LatencyBuckets-h.First
}
