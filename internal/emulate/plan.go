package emulate

import "time"

const (
	minCompute = 10 * time.Millisecond // per step: the error of a sleep would count below it
	// reading a cold batch takes 0.8 of the compute time: 44 % of a cold epoch, and little enough that the epoch keeps the
	// accelerator busy from the page cache even on a fast disk
	readPerTenths = 8
	defaultEpoch  = 8 * time.Second
	longestEpoch  = time.Hour
	shortestRead  = time.Microsecond // less than the cost of a read call, so not from a disk
	longestRead   = time.Minute
)

// Plan is an epoch: Steps times a batch of RecordsPerStep records followed by Compute on the accelerator.
type Plan struct {
	Seed           uint64 // selects the records and their order
	Steps          int
	RecordsPerStep int
	Compute        time.Duration // per step

	// The measurements: the mean time to read one record and update the checksum in the rhythm of this epoch.
	Cold time.Duration // not cached
	Warm time.Duration // cached
}

// newPlan plans an epoch of about the given length for a disk that takes cold per record and a page cache that takes
// warm. The epoch is shorter on a disk for which records are too few.
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

// batch returns the minimum number of records that take long enough to read for a step with minCompute.
func batch(cold time.Duration) int {
	reading := minCompute * readPerTenths / 10
	return int((reading + cold - 1) / cold)
}

// ColdTime returns the expected length of the epoch with no record cached.
func (p Plan) ColdTime() time.Duration { return p.time(p.Cold) }

// WarmTime returns the expected length of the epoch with all records cached.
func (p Plan) WarmTime() time.Duration { return p.time(p.Warm) }

// StallShare returns the expected share of storage stall in the cold epoch, from 0 to 1: the time of reading minus the
// page cache's own time.
func (p Plan) StallShare() float64 {
	if p.ColdTime() <= 0 {
		return 0
	}
	return float64(p.ColdTime()-p.WarmTime()) / float64(p.ColdTime())
}

func (p Plan) time(record time.Duration) time.Duration {
	return time.Duration(p.Steps) * (time.Duration(p.RecordsPerStep)*record + p.Compute)
}
