package emulate

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
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

// castagnoli is the checksum with a CPU instruction: about 0.1 us per KiB.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// LoadOptions are options of Load. The zero value is valid.
type LoadOptions struct {
	Chunk int // bytes per read call, up to 64 MiB; default 1 MiB
}

// Loaded is what a Load did.
type Loaded struct {
	Bytes    int64
	Waited   time.Duration // inside read calls
	Total    time.Duration
	Checksum uint32 // CRC-32C of the model
}

// Load reads the whole model file sequentially through the page cache, like a program that loads weights, and computes
// its checksum. The accelerator is idle. When ctx ends it stops within one read, and returns its progress with ctx's
// error.
func Load(ctx context.Context, f *Files, o LoadOptions) (Loaded, error) {
	if o.Chunk <= 0 {
		o.Chunk = mib
	}
	buffer := make([]byte, min(o.Chunk, 64*mib))
	var done Loaded
	runtime.LockOSThread() // like a real training loop; the Go runtime would move it between threads
	defer runtime.UnlockOSThread()
	begin := sample.Now().Mono
	err := with(f.Model(), func(file *os.File) error {
		for {
			if err := ctx.Err(); err != nil {
				return err
			}
			before := sample.Now().Mono
			n, err := file.Read(buffer)
			done.Waited += sample.Now().Mono - before
			done.Bytes += int64(n)
			done.Checksum = crc32.Update(done.Checksum, castagnoli, buffer[:n])
			if errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
	done.Total = sample.Now().Mono - begin
	return done, err
}
