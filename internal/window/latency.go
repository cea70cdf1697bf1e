package window

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Latency is how long the operations of one kind took on a disk, from submission to completion as the await. P50 and
// P99 are interpolated in buckets that are 19 % wide, and Max is the end of the highest one.
type Latency struct {
	Operations    uint64
	P50, P99, Max time.Duration
	Estimated     bool // the readings were up to 1.5 s from the ends of the window
}

// addLatency sets how long the operations of a device took.
func (v *view) addLatency(d *DiskUse) {
	d.ReadLatency = v.latency(d.Name, sample.ReadOperation)
	d.WriteLatency = v.latency(d.Name, sample.WriteOperation)
}

func (v *view) latency(disk string, o sample.Operation) *Latency {
	h, exact := v.history.Latency(disk, o, v.from(), v.to())
	if h.Count() == 0 {
		return nil
	}
	return &Latency{h.Count(), h.Quantile(0.5), h.Quantile(0.99), h.Max(), !exact}
}
