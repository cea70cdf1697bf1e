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
