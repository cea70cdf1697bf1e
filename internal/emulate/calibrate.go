package emulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// CalibrateOptions says what epochs are wanted. The zero value is fit for use.
type CalibrateOptions struct {
	EpochTime time.Duration // how long a cold epoch lasts, as far as there are records; default 8 s, most an hour
	Seed      uint64        // which records the epochs read, in which order
}

// Calibrate measures how long reading a record takes on this disk and from the page cache, and plans epochs that
// wait for the disk for about 60 % of their time when they are cold. It measures on a shard that no epoch reads, and
// leaves the caching of the other files as it is. It takes one to four seconds, up to six on a disk of 100 ms a read.
//
// It fails where the page cache makes no difference.
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
		return Plan{}, fmt.Errorf("a record below %s takes %v to read cold and %v from the page cache: another cache lies under this %s, or the disk is as fast as memory; pass --dir with a path on another disk",
			f.dir, cold, warm, f.system.Name)
	}
	plan := newPlan(cold, warm, f.Records(), o.EpochTime)
	plan.Seed = o.Seed
	return plan, nil
}

// extent says when a measurement has seen enough: records and reading both reached, or most, once it has fewest
// records.
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

// measure is the typical mean time of a record in the rhythm of an epoch, cold and then from the page cache. The
// first measurement, without a pause, tells which rhythm that is about; the second takes it up, because a disk that
// rests between batches answers otherwise than one that is never left alone.
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
	cold = settle(alone, typicalMean(times), draft.Compute/time.Duration(draft.RecordsPerStep))

	order = order[:min(len(times), 32*draft.RecordsPerStep)]
	times, err = rehearse(ctx, r, a, order, draft, rhythmic)
	if err != nil {
		return 0, 0, err
	}
	return cold, typicalMean(times), nil
}

// rehearse reads the records of order as an epoch with this plan would, until it has seen enough, and gives the time
// of each.
func rehearse(ctx context.Context, r *records, a *Accelerator, order []int, plan Plan, enough extent) ([]time.Duration, error) {
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
