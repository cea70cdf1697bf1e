// Package scenario proves the diagnosis: it runs real work on really slow storage, has it watched as any job is, and holds
// the ledger and the verdict against what the work itself says it waited for.
//
// A Case is a situation whose verdict is known, and makes as many variants of it as there are seeds. A Runner runs a
// variant once on slow storage under a monitor, and once more from memory. Its Result is what was true and what was
// found; a Score sums up many. Each run's recording is kept, so that Replay finds the same again, or something better.
package scenario

import (
	"math/rand/v2"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/scenarios/pipeline"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// Case is a situation with a known answer.
type Case struct {
	Name  string
	Label window.Verdict // of its first window; a stage may have another
	Short bool           // it belongs to the short form
	Make  func(*draw) Variant
}

// Variant draws the variant of that seed: the same one for the same seed.
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

// readAhead has the kernel read ahead no more than a record where records of mapped files are read: it would fetch each
// one's neighbours too, and the storage would be faster from moment to moment.
func (v *Variant) readAhead(s *Stage) {
	if s.From == Cold && s.Plan.Batch > 0 && s.Plan.Reading == pipeline.Mapped {
		v.Options.ReadAhead = int64(min(s.Plan.Record, mostReadAhead))
	}
}

const mostReadAhead = 128 << 10 // bytes: the kernel's default

// MostVariants is how many variants of a case one seed makes.
const MostVariants = 50

// Seed is that of a case's i-th variant, and Retry that of the one which takes its place when it is void.
func Seed(seed uint64, i int) uint64 { return seed*2*MostVariants + uint64(i) }

// Made is the seed of which a variant is: the first of Seed's.
func Made(variant uint64) uint64 { return variant / (2 * MostVariants) }

// Retry is told of with Seed.
func Retry(seed uint64) uint64 { return seed + MostVariants }
