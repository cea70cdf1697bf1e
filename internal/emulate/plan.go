package emulate

import "time"

const (
	leastCompute  = 10 * time.Millisecond // a step: below it, a sleep's own error would count
	readPerTenths = 8                     // reading a cold batch takes 8 tenths of the compute: 44 % of a cold epoch, and little enough that even a fast disk's epoch keeps the accelerator busy from the page cache
	defaultEpoch  = 8 * time.Second
	longestEpoch  = time.Hour
	shortestRead  = time.Microsecond // below a read call's own cost, so no disk's
	longestRead   = time.Minute
)

// Plan is an epoch: Steps times a batch of RecordsPerStep records and then Compute on the accelerator.
type Plan struct {
	Seed           uint64 // decides which records, in which order
	Steps          int
	RecordsPerStep int
	Compute        time.Duration // a step

	// What it was made from: the mean time to read one record and add up its checksum, in the rhythm of this epoch.
	Cold time.Duration // not in the page cache
	Warm time.Duration // in it
}

// newPlan fits an epoch of about the given length to a disk that takes cold for a record and a page cache that takes
// warm. At most records records are read, so the epoch is shorter on a disk for which they are too few.
func newPlan(cold, warm time.Duration, records int, epoch time.Duration) Plan {
	cold = min(max(cold, shortestRead), longestRead)
	warm = min(max(warm, 0), cold)
	epoch = min(max(epoch, 0), longestEpoch)
	perStep := min(batch(cold), max(records, 0))
	compute := time.Duration(perStep) * cold * 10 / readPerTenths
	p := Plan{RecordsPerStep: perStep, Compute: compute, Cold: cold, Warm: warm}
	if perStep > 0 {
		step := time.Duration(perStep)*cold + compute
		p.Steps = min(max(int((epoch+step/2)/step), 1), records/perStep)
	}
	return p
}

// batch is the least number of records that take long enough to read for a step with leastCompute.
func batch(cold time.Duration) int {
	reading := leastCompute * readPerTenths / 10
	return int((reading + cold - 1) / cold)
}

// ColdTime is how long the epoch should take when no record is in the page cache, and WarmTime when all are.
func (p Plan) ColdTime() time.Duration { return p.time(p.Cold) }

// WarmTime is how long the epoch should take when all records are in the page cache.
func (p Plan) WarmTime() time.Duration { return p.time(p.Warm) }

// StallShare is the part of the cold epoch, from 0 to 1, that should be waiting for storage: what reading takes beyond
// the page cache's own time.
func (p Plan) StallShare() float64 {
	if p.ColdTime() <= 0 {
		return 0
	}
	return float64(p.ColdTime()-p.WarmTime()) / float64(p.ColdTime())
}

func (p Plan) time(record time.Duration) time.Duration {
	return time.Duration(p.Steps) * (time.Duration(p.RecordsPerStep)*record + p.Compute)
}
