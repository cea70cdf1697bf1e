package emulate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
)

// Epoch trains for plan.Steps steps: it reads a batch of records one after another, each at a pseudo-random place and
// none twice, and then computes. When ctx ends it stops within one batch, and returns ctx's error.
func Epoch(ctx context.Context, f *Files, a *Accelerator, plan Plan) (err error) {
	if plan.Steps < 0 || plan.RecordsPerStep < 0 ||
		(plan.RecordsPerStep > 0 && plan.Steps > f.Records()/plan.RecordsPerStep) {
		return fmt.Errorf("a plan of %d steps with %d records each does not fit files of %d records: calibrate "+
			"with these files", plan.Steps, plan.RecordsPerStep, f.Records())
	}
	runtime.LockOSThread() // like a real training loop; the Go runtime would move it between threads
	defer runtime.UnlockOSThread()
	r, err := f.openRecords(calibrationShards, epochShards)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	order := r.shuffled()
	for range plan.Steps {
		for _, position := range order[:plan.RecordsPerStep] {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := r.read(position); err != nil {
				return err
			}
		}
		order = order[plan.RecordsPerStep:]
		a.Compute(plan.Compute)
	}
	return nil
}

// Load reads the whole model file sequentially through the page cache, like a program that loads weights. The
// accelerator is idle. When ctx ends it stops within one read, and returns ctx's error.
func Load(ctx context.Context, f *Files) error {
	runtime.LockOSThread() // like a real training loop; the Go runtime would move it between threads
	defer runtime.UnlockOSThread()
	return readThrough(ctx, f.Model())
}

const (
	recordBytes = 4096

	// The first shard is reserved for the calibration, so that it caches nothing that an epoch reads.
	calibrationShards = 1
	epochShards       = shards - calibrationShards

	largestStride = 128 << 10 // ZFS's default block; with larger blocks there would be too few records
)

// records reads single records of some shards. Two records never share a page or a block of the file system. Otherwise
// reading one would cache the other.
type records struct {
	open     []*os.File
	stride   int64 // bytes from one record to the next
	perShard int
	buffer   [recordBytes]byte
}

// stride returns the distance between two records, perShard their number in a shard.
func (f *Files) stride() int64 { return min(max(recordBytes, f.system.Block), largestStride) }
func (f *Files) perShard() int { return int(f.shardBytes() / f.stride()) }

// Records returns how many records an epoch may read without reading one twice.
func (f *Files) Records() int { return epochShards * f.perShard() }

// openRecords opens n shards, starting at first. It opens them again because read-ahead is a property of the open file.
func (f *Files) openRecords(first, n int) (*records, error) {
	r := &records{stride: f.stride(), perShard: f.perShard()}
	for i := first; i < first+n; i++ {
		file, err := os.Open(f.shard(i))
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.open = append(r.open, file)
		if err := readNothingAhead(file); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return r, nil
}

// read reads the record at a position below len(open) x perShard.
func (r *records) read(position int) error {
	_, err := r.open[position/r.perShard].ReadAt(r.buffer[:], int64(position%r.perShard)*r.stride)
	return err
}

func (r *records) close() error {
	var err error
	for _, file := range r.open {
		err = errors.Join(err, file.Close())
	}
	return err
}

// shuffled returns every position of n shards once, in the same order each time.
func (r *records) shuffled() []int {
	return rand.New(rand.NewPCG(0, 0)).Perm(len(r.open) * r.perShard)
}
