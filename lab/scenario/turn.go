package scenario

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// dimension is a parameter of a variant with few values.
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

// turn returns one of a few choices. The choices rotate from one variant of a seed to the next, so that a few variants
// cover all of them: each n consecutive variants, counted from the first, have each of n choices once. The order
// depends on the case, the dimension, the seed and the row, so that over several seeds each choice meets each choice of
// another dimension. A variant that replaces a void one has the same choices. Otherwise combinations that tend to be
// void would be missing.
func turn[T any](d *draw, of dimension, choices ...T) T {
	n := uint64(len(choices))
	i := d.seed % MaxVariants
	rows := Made(d.seed)*MaxVariants + i/n // no two seeds of a case share one
	shuffled := rand.New(rand.NewPCG(rows, hash(fmt.Sprintf("%s %s %d", d.name, of, n)))).Perm(len(choices))
	return choices[shuffled[i%n]]
}

// hash returns a number for a name.
func hash(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return h.Sum64()
}
