package baseline

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
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
func (r *Record) Usual() (window.Usual, bool) {
	return window.Usual{Median: r.Median(), P95: r.P95(), Count: len(r.Took)}, len(r.Took) >= Enough
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

// stored is a record's form in the file, behind the checksum of its key and itself: the file's own checksums do not
// cover what it holds.
type stored struct {
	Last int64   `json:"last"`           // s since 1970
	Slow int     `json:"slow,omitempty"` //
	Took []int64 `json:"took,omitempty"` // ns, the newest last
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (r *Record) encode(key Key) ([]byte, error) {
	s := stored{Last: r.Last.Unix(), Slow: r.Slow}
	for _, d := range r.Took {
		s.Took = append(s.Took, int64(d))
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	sum := crc32.Update(crc32.Checksum([]byte(key), castagnoli), castagnoli, text)
	return append(binary.LittleEndian.AppendUint32(nil, sum), text...), nil
}

// errRecord says that a record is not as it was written.
var errRecord = errors.New("what it says of a load or epoch is not what was written")

func decode(key, value []byte) (*Record, error) {
	if len(value) < 4 {
		return nil, errRecord
	}
	text := value[4:]
	if crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, text) != binary.LittleEndian.Uint32(value) {
		return nil, errRecord
	}
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", errRecord, err)
	}
	if len(s.Took) > Kept || s.Slow < 0 || s.Slow > math.MaxInt32 {
		return nil, errRecord
	}
	r := &Record{Slow: s.Slow, Last: time.Unix(s.Last, 0).UTC()}
	for _, ns := range s.Took {
		if ns <= 0 {
			return nil, errRecord
		}
		r.Took = append(r.Took, time.Duration(ns))
	}
	return r, nil
}
