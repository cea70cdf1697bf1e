// Package scenario tests the diagnosis on labelled work: it runs real work on slow storage under a monitor, and
// compares the ledger and the verdict with the log that the work itself keeps.
//
// A Case is a situation with a known verdict; a seed makes variants of it. A Runner runs a variant on slow storage
// under a monitor, and again from memory. A Result holds the truth and the report; a Score sums up many results. Each
// run's recording is kept, so that Replay can judge it again with another estimator.
package scenario

import (
	"math/rand/v2"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/lab/pipeline"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// Case is a situation with a known verdict.
type Case struct {
	Name  string
	Label window.Verdict // of its first window; a stage may have its own
	Short bool           // part of the short form
	Make  func(*draw) Variant
}

// Variant draws the variant of a seed; the same seed gives the same variant.
func (c *Case) Variant(seed uint64, short bool) Variant {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, hash(c.Name))), name: c.Name, seed: seed, length: fullLength}
	if short {
		d.length = shortLength
	}
	v := c.Make(d)
	v.Name, v.Seed = c.Name, seed
	for i := range v.Stages {
		if v.Stages[i].Label == "" {
			v.Stages[i].Label = c.Label
		}
		v.readAhead(&v.Stages[i])
		v.Stages[i].saves = v.Kind == slowdisk.Throttled && v.Stages[i].From == Cold
	}
	return v
}

// readAhead limits the kernel's read-ahead to a record for records of mapped files. Otherwise the kernel would read the
// neighbouring records too, and the storage would become faster over time.
func (v *Variant) readAhead(s *Stage) {
	if s.From == Cold && s.Plan.Batch > 0 && s.Plan.Reading == pipeline.Mapped {
		v.Options.ReadAhead = int64(min(s.Plan.Record, maxReadAhead))
	}
}

const maxReadAhead = 128 << 10 // bytes; the kernel's default

// MaxVariants is how many variants of a case one seed makes.
const MaxVariants = 50

// Seed returns the seed of a case's i-th variant.
func Seed(seed uint64, i int) uint64 { return seed*2*MaxVariants + uint64(i) }

// Made returns the seed that made a variant: the inverse of Seed.
func Made(variant uint64) uint64 { return variant / (2 * MaxVariants) }

// Retry returns the seed of the variant that replaces a void one.
func Retry(seed uint64) uint64 { return seed + MaxVariants }
