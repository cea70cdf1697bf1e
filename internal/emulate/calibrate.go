package emulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// CalibrateOptions describe the epochs to plan. The zero value is valid.
type CalibrateOptions struct {
	EpochTime time.Duration // length of a cold epoch if there are enough records; default 8 s, maximum one hour
	Seed      uint64        // selects the records and their order
}

// Calibrate measures how long it takes to read a record from this disk and from the page cache. It plans epochs that
// wait for the disk for about 60 % of their time when they are cold. It measures on a shard that no epoch reads, and
// does not change which other files are cached. It takes one to four seconds, or up to six on a disk with 100 ms per
// read.
//
// It fails if the page cache makes no difference.
func Calibrate(ctx context.Context, f *Files, a *Accelerator, o CalibrateOptions) (Plan, error) {
	if o.EpochTime <= 0 {
		o.EpochTime = defaultEpoch
	}
	own := f.shard(0)
	if err := with(own, forget); err != nil {
		return Plan{}, err
	}
	if err := f.checkCold(own); err != nil {
		return Plan{}, err
	}
	cold, warm, err := f.measure(ctx, a, o.Seed)
	if err != nil {
		return Plan{}, err
	}
	if cold < warm+warm/2 {
		return Plan{}, fmt.Errorf("a record below %s takes %v to read cold and %v from the page cache: another cache lies "+
			"under this %s, or the disk is as fast as memory; pass --dir with a path on another disk",
			f.dir, cold, warm, f.system.Name)
	}
	plan := newPlan(cold, warm, f.Records(), o.EpochTime)
	plan.Seed = o.Seed
	return plan, nil
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
func (f *Files) measure(ctx context.Context, a *Accelerator, seed uint64) (cold, warm time.Duration, err error) {
	r, err := f.openRecords(0, calibrationShards)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	order := r.shuffled(seed)

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
		if _, err := r.read(position); err != nil {
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
