package baseline

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// Record is what is known of one key.
type Record struct {
	Took []time.Duration // the last Kept ones that were not slow, the newest last
	Slow int             // windows that were slow since the last one that was not
	Last time.Time       // when the last of all ended, in whole seconds
}

// learn adds a window to the record. A slow one is counted and else left out.
func (r *Record) learn(took time.Duration, slow bool, at time.Time) {
	if at = at.UTC().Truncate(time.Second); at.After(r.Last) {
		r.Last = at
	}
	if slow {
		r.Slow++
		return
	}
	r.Slow = 0
	r.Took = append(r.Took, took)
	if over := len(r.Took) - Kept; over > 0 {
		r.Took = slices.Delete(r.Took, 0, over)
	}
}

// Usual is what the record says, exact over its observations; false where they are too few to judge by.
func (r *Record) Usual() (window.Baseline, bool) {
	return window.Baseline{Median: r.Median(), P95: r.P95(), Count: len(r.Took)}, len(r.Took) >= Enough
}

// Median is the middle one, or the mean of the two in the middle; 0 without any.
func (r *Record) Median() time.Duration {
	n := len(r.Took)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(r.Took))
	low, high := sorted[(n-1)/2], sorted[n/2]
	return low + (high-low)/2
}

// P95 is the smallest one that at least 95 of 100 do not exceed (the nearest rank): up to nineteen, the longest. It is 0
// without any.
func (r *Record) P95() time.Duration {
	n := len(r.Took)
	if n == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(r.Took))[(95*n+99)/100-1]
}

func (r *Record) clone() *Record {
	c := *r
	c.Took = slices.Clone(r.Took)
	return &c
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode gives a record's form in the file: the checksum (CRC-32C) of its key and of what follows, because the file's own
// checksums do not cover what it holds; then, as unsigned varints, Last in seconds since 1970, Slow, and each of Took in
// nanoseconds.
func (r *Record) encode(key Key) []byte {
	b := make([]byte, sumSize, sumSize+16+6*len(r.Took))
	b = binary.AppendUvarint(b, uint64(max(0, r.Last.Unix())))
	b = binary.AppendUvarint(b, uint64(r.Slow))
	for _, d := range r.Took {
		b = binary.AppendUvarint(b, uint64(d))
	}
	binary.LittleEndian.PutUint32(b, sum(string(key), b))
	return b
}

const sumSize = 4

func sum(key string, value []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte(key), castagnoli), castagnoli, value[sumSize:])
}

// errRecord says that a record is not as it was written.
var errRecord = errors.New("what it says of a load or epoch is not what was written")

func decode(key, value []byte) (*Record, error) {
	if len(value) < sumSize || sum(string(key), value) != binary.LittleEndian.Uint32(value) {
		return nil, errRecord
	}
	var numbers [2 + Kept]uint64
	n := 0
	for value = value[sumSize:]; len(value) > 0; n++ {
		v, length := binary.Uvarint(value)
		if length <= 0 || n == len(numbers) || v > math.MaxInt64 {
			return nil, errRecord
		}
		numbers[n], value = v, value[length:]
	}
	if n < 2 || numbers[1] > math.MaxInt32 {
		return nil, errRecord
	}
	r := &Record{Last: time.Unix(int64(numbers[0]), 0).UTC(), Slow: int(numbers[1])}
	if n > 2 {
		r.Took = make([]time.Duration, 0, n-2)
	}
	for _, ns := range numbers[2:n] {
		r.Took = append(r.Took, time.Duration(ns))
	}
	return r, nil
}
