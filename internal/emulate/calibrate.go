package emulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Calibrate measures how long it takes to read a record from this disk and from the page cache. It plans epochs that
// wait for the disk for about 60 % of their time when they are cold, and then are about so long, if there are enough
// records; 0 for 8 s, an hour at most. It measures on a shard that no epoch reads, and
// does not change which other files are cached. It takes one to four seconds, or up to six on a disk with 100 ms per
// read.
//
// It fails if the page cache makes no difference.
func Calibrate(ctx context.Context, f *Files, a *Accelerator, epoch time.Duration) (Plan, error) {
	if epoch <= 0 {
		epoch = defaultEpoch
	}
	own := f.shard(0)
	if err := with(own, forget); err != nil {
		return Plan{}, err
	}
	if err := f.checkCold(own); err != nil {
		return Plan{}, err
	}
	cold, warm, err := f.measure(ctx, a)
	if err != nil {
		return Plan{}, err
	}
	if cold < warm+warm/2 {
		return Plan{}, fmt.Errorf("a record below %s takes %v to read cold and %v from the page cache: another cache lies "+
			"under this %s, or the disk is as fast as memory; pass --dir with a path on another disk",
			f.dir, cold, warm, f.system.Name)
	}
	return newPlan(cold, warm, f.Records(), epoch), nil
}

// extent is when a measurement ends: when records and reading are both reached, or when most is reached with at least
// fewest records.
type extent struct {
	records int
	reading time.Duration
	most    time.Duration
	fewest  int
}

var (
	restless = extent{records: 100, reading: 300 * time.Millisecond, most: time.Second, fewest: 16}
	rhythmic = extent{records: 300, reading: 500 * time.Millisecond, most: 1500 * time.Millisecond, fewest: 32}
)

// measure returns the typical mean time of a record in the rhythm of an epoch, cold and then cached. The first
// measurement has no pauses and determines that rhythm. The second one uses it, because a disk that rests between
// batches responds differently from a disk under constant load.
func (f *Files) measure(ctx context.Context, a *Accelerator) (cold, warm time.Duration, err error) {
	r, err := f.openRecords(0, calibrationShards)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	order := r.shuffled()

	times, err := rehearse(ctx, r, a, order[:len(order)/4], Plan{}, restless)
	if err != nil {
		return 0, 0, err
	}
	order = order[len(times):]
	alone := typicalMean(times)
	draft := newPlan(alone, 0, len(order), 0)
	times, err = rehearse(ctx, r, a, order, draft, rhythmic)
	if err != nil {
		return 0, 0, err
	}
	cold = coldTime(alone, typicalMean(times), draft.Compute/time.Duration(draft.RecordsPerStep))

	order = order[:min(len(times), 32*draft.RecordsPerStep)]
	times, err = rehearse(ctx, r, a, order, draft, rhythmic)
	if err != nil {
		return 0, 0, err
	}
	return cold, typicalMean(times), nil
}

// rehearse reads the records of order as an epoch with this plan would until it has enough, and returns the time of
// each.
func rehearse(ctx context.Context, r *records, a *Accelerator, order []int, plan Plan, enough extent) ([]time.Duration,
	error) {
	var times []time.Duration
	var reading time.Duration
	for i, position := range order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if (i >= enough.records && reading >= enough.reading) || (i >= enough.fewest && reading >= enough.most) {
			break
		}
		before := sample.Now().Mono
		if err := r.read(position); err != nil {
			return nil, err
		}
		times = append(times, sample.Now().Mono-before)
		reading += times[i]
		if plan.RecordsPerStep > 0 && (i+1)%plan.RecordsPerStep == 0 {
			a.Compute(plan.Compute)
		}
	}
	return times, nil
}

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
	Steps          int
	RecordsPerStep int
	Compute        time.Duration // per step

	// The measurements: the mean time to read one record in the rhythm of this epoch.
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

func (p Plan) time(record time.Duration) time.Duration {
	return time.Duration(p.Steps) * (time.Duration(p.RecordsPerStep)*record + p.Compute)
}
