package emulate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Trained is what an Epoch did, by its own clock. Total exceeds Waited and Computed by the checksums and bookkeeping.
type Trained struct {
	Steps    int // completed
	Records  int
	Bytes    int64
	Waited   time.Duration // inside read calls: the truth for a storage stall
	Computed time.Duration // the accelerator was busy
	Total    time.Duration
	Checksum uint32 // CRC-32C of the records in order: equal for equal plans on equal files
}

// Epoch trains for plan.Steps steps: it reads a batch of records one after another, each at a pseudo-random place and
// none twice, and then computes. When ctx ends it stops within one batch, and returns its progress with ctx's error.
func Epoch(ctx context.Context, f *Files, a *Accelerator, plan Plan) (done Trained, err error) {
	if plan.Steps < 0 || plan.RecordsPerStep < 0 ||
		(plan.RecordsPerStep > 0 && plan.Steps > f.Records()/plan.RecordsPerStep) {
		return Trained{}, fmt.Errorf("a plan of %d steps with %d records each does not fit files of %d records: calibrate "+
			"with these files",
			plan.Steps, plan.RecordsPerStep, f.Records())
	}
	begin := sample.Now().Mono
	defer func() { done.Total = sample.Now().Mono - begin }()
	runtime.LockOSThread() // like a real training loop; the Go runtime would move it between threads
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
