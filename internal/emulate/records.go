package emulate

import (
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	recordBytes = 4096

	// The first shard is the calibration's own, so that measuring warms nothing that an epoch will read.
	calibrationShards = 1
	epochShards       = shards - calibrationShards

	largestStride = 128 << 10 // ZFS's usual block; beyond that, records would become too few
)

// records reads single records of some shards. Two records never share a page or a block of the file system, or the
// second would come from the page cache because of the first.
type records struct {
	open     []*os.File
	stride   int64 // bytes from one record to the next
	perShard int
	buffer   [recordBytes]byte
	checksum uint32 // over all records read, in their order
}

// stride is the distance of two records, and perShard how many of them a shard holds.
func (f *Files) stride() int64 { return min(max(recordBytes, f.system.Block), largestStride) }
func (f *Files) perShard() int { return int(f.shardBytes() / f.stride()) }

// Records is how many records an epoch may read without reading one twice.
func (f *Files) Records() int { return epochShards * f.perShard() }

// openRecords opens n shards from the first on, anew: read-ahead is a property of the open file.
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

// read reads the record at a position below len(open) x perShard and adds it to the checksum. It returns the time
// inside the read call.
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

// shuffled is every position of n shards once, in an order that only the seed decides.
func (r *records) shuffled(seed uint64) []int {
	return rand.New(rand.NewPCG(seed, 0)).Perm(len(r.open) * r.perShard)
}
