package emulate

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
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
func Load(ctx context.Context, f *Files) (Loaded, error) {
	buffer := make([]byte, mib)
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
	checksum uint32 // over all records read, in their order
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

// read reads the record at a position below len(open) x perShard and updates the checksum. It returns the time inside
// the read call.
func (r *records) read(position int) (time.Duration, error) {
	before := sample.Now().Mono
	_, err := r.open[position/r.perShard].ReadAt(r.buffer[:], int64(position%r.perShard)*r.stride)
	waited := sample.Now().Mono - before
	if err != nil {
		return waited, err
	}
	r.checksum = crc32.Update(r.checksum, castagnoli, r.buffer[:])
	return waited, nil
}

func (r *records) close() error {
	var err error
	for _, file := range r.open {
		err = errors.Join(err, file.Close())
	}
	return err
}

// shuffled returns every position of n shards once, in an order that depends on the seed only.
func (r *records) shuffled(seed uint64) []int {
	return rand.New(rand.NewPCG(seed, 0)).Perm(len(r.open) * r.perShard)
}
