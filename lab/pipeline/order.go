//go:build linux

package pipeline

import (
	"fmt"
	"math/rand/v2"
	"os"
)

// place is the position of a record.
type place struct {
	file   int
	offset int64
}

// order is the sequence of records of an epoch. It is the same in every process for the same plan on files of the same
// sizes. Records are contiguous from the start of each file; the remainder at its end is not read.
type order struct {
	record int64
	begin  []int64 // of each file, in records of the files before it; one more for the end
	taken  []uint32
}

// newOrder fails if the files hold fewer records than the plan needs.
func newOrder(plan *Plan) (*order, error) {
	o := &order{record: int64(plan.Record), begin: make([]int64, 1, len(plan.Files)+1)}
	for _, path := range plan.Files {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		o.begin = append(o.begin, o.begin[len(o.begin)-1]+info.Size()/o.record)
	}
	have, want := o.begin[len(o.begin)-1], int64(plan.Steps)*int64(plan.Batch)
	if want > have {
		return nil, fmt.Errorf("a plan of %d steps with %d records each does not fit files of %d records: write more of them",
			plan.Steps, plan.Batch, have)
	}
	if have > 1<<32 {
		return nil, fmt.Errorf("%d records are more than an order keeps: make records larger", have)
	}
	all := make([]uint32, have)
	for i := range all {
		all[i] = uint32(i)
	}
	r := rand.New(rand.NewPCG(plan.Seed, 0))
	for i := range want { // a partial shuffle is enough
		j := i + r.Int64N(have-i)
		all[i], all[j] = all[j], all[i]
	}
	o.taken = all[:want]
	return o, nil
}

func (o *order) at(i int) place {
	record := int64(o.taken[i])
	low, high := 0, len(o.begin)-1
	for high-low > 1 {
		if middle := (low + high) / 2; o.begin[middle] <= record {
			low = middle
		} else {
			high = middle
		}
	}
	return place{file: low, offset: (record - o.begin[low]) * o.record}
}

// locate returns the place of record i, and its size in bytes.
func (o *order) locate(i int) (place, int) { return o.at(i), int(o.record) }
