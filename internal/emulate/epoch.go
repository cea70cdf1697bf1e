package emulate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Trained is what an Epoch did, by its own clock. What Total has beyond Waited and Computed is checksums and
// bookkeeping.
type Trained struct {
	Steps    int // completed
	Records  int
	Bytes    int64
	Waited   time.Duration // inside read calls: the truth that a storage stall is measured against
	Computed time.Duration // the accelerator was busy
	Total    time.Duration
	Checksum uint32 // CRC-32C over the records in the order read: the same for the same plan on the same files
}

// Epoch trains for plan.Steps steps: it reads a batch of records one after another, each at a pseudo-random place and
// none of them twice, and then lets the accelerator compute. When ctx ends it stops within one batch and returns what
// it has done with ctx's error.
func Epoch(ctx context.Context, f *Files, a *Accelerator, plan Plan) (done Trained, err error) {
	if plan.Steps < 0 || plan.RecordsPerStep < 0 || (plan.RecordsPerStep > 0 && plan.Steps > f.Records()/plan.RecordsPerStep) {
		return Trained{}, fmt.Errorf("a plan of %d steps with %d records each does not fit files of %d records: calibrate with these files",
			plan.Steps, plan.RecordsPerStep, f.Records())
	}
	begin := sample.Now().Mono
	defer func() { done.Total = sample.Now().Mono - begin }()
	runtime.LockOSThread() // a training loop is a thread of its own; the runtime would pass it around
	defer runtime.UnlockOSThread()
	r, err := f.openRecords(calibrationShards, epochShards)
	if err != nil {
		return Trained{}, err
	}
	defer func() {
		done.Checksum = r.checksum
		err = errors.Join(err, r.close())
	}()
	order := r.shuffled(plan.Seed)
	for range plan.Steps {
		for _, position := range order[:plan.RecordsPerStep] {
			if err := ctx.Err(); err != nil {
				return done, err
			}
			waited, err := r.read(position)
			if err != nil {
				return done, err
			}
			done.Waited += waited
			done.Records++
			done.Bytes += recordBytes
		}
		order = order[plan.RecordsPerStep:]
		done.Computed += a.Compute(plan.Compute)
		done.Steps++
	}
	return done, nil
}
