package scenario

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// dimension is something of a variant that there are only a few of.
type dimension string

const (
	device      dimension = "device"
	style       dimension = "style"
	reading     dimension = "reading"
	accelerator dimension = "accelerator"
	noise       dimension = "noise" // how the neighbours read
	order       dimension = "order" // of phases
	length      dimension = "length"
)

// turn takes one of a few. From one variant of a seed to the next the choices take turns, so that a handful of variants
// has them all: each n variants in a row, counted from the first, have each of n choices once. In which order follows from
// the case, the dimension, the seed and the row, so that over some seeds each choice meets each one of another dimension.
// What runs in a void variant's place has the same choices, or the combinations that come out void would not be missed.
func turn[T any](d *draw, of dimension, choices ...T) T {
	n := uint64(len(choices))
	i := d.seed % MostVariants
	rows := Made(d.seed)*MostVariants + i/n // no two of a case's seeds share one
	shuffled := rand.New(rand.NewPCG(rows, hash(fmt.Sprintf("%s %s %d", d.name, of, n)))).Perm(len(choices))
	return choices[shuffled[i%n]]
}

// hash is a number for a name.
func hash(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return h.Sum64()
}
