package scenario

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/lab/pipeline"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// Variant is one instance of a case: where the files are, the work, and what else runs.
type Variant struct {
	Name string
	Seed uint64

	Kind    slowdisk.Kind // of the disk with the files
	Options slowdisk.Options
	Files   int
	Size    int64 // bytes of each file
	Model   int64 // maximum bytes of the model file; 0 for none

	Stages     []Stage
	Whole      window.Verdict // of an additional window around all stages; "" for none
	Neighbours []Neighbour
}

// Stage is the work of one window.
type Stage struct {
	Label  window.Verdict
	Length time.Duration // approximate

	// Plan is the work, without the values that depend on the measured storage: files, compute time, steps, and the decode
	// time if the aim gives a share for it. A plan without a batch loads the model.
	Plan Plan
	Aim  Aim
	From From
	Idle bool // do nothing

	size  int64 // bytes of each file
	saves bool  // the storage serves faster later if it rests while the accelerator computes
}

// Plan is the plan of the training program.
type Plan = pipeline.Plan

// From is where a stage's files are when it begins.
type From string

const (
	Cold   From = ""       // on the slow disk, not cached
	Cached From = "cached" // on the disk, and in the page cache
	Copied From = "copied" // on tmpfs
)

// Aim is how a window's time is to be divided, in shares. Storage gets the rest. With prefetching, a Busy of 1 or more
// makes the accelerator the slowest part: it computes Busy times as long as a batch takes to be made.
type Aim struct {
	Busy float64
	CPU  float64 // 0 if Plan.Decode is set
	Sync float64
}

// Neighbour is the work of a neighbour in another cgroup, at the same time.
type Neighbour struct {
	Kind    slowdisk.Kind // of a disk of its own; "" for the case's disk
	Options slowdisk.Options
	Size    int64          // bytes of the file that the noise reads
	Noise   pipeline.Noise // without Files
	Load    bool           // instead of noise: the load of the case, from another file
}

// cold reports whether the stage waits for the slow disk, so that a rerun from memory adds information.
func (s *Stage) cold() bool { return !s.Idle && (s.From == Cold || s.Plan.CheckpointEvery > 0) }

// load reports whether the stage is a model load.
func (s *Stage) load() bool { return !s.Idle && s.Plan.Batch == 0 }

// About describes the variant in words.
func (v *Variant) About() string {
	words := []string{string(v.Kind)}
	for i := range v.Stages {
		words = append(words, v.Stages[i].about())
	}
	for _, b := range v.Neighbours {
		if b.Load {
			words = append(words, "next to another load")
		} else {
			words = append(words, fmt.Sprintf("next to %s x%d", b.Noise.Reading, b.Noise.Workers))
		}
	}
	return strings.Join(words, ", ")
}

func (s *Stage) about() string {
	p := &s.Plan
	switch {
	case s.Idle:
		return "idle"
	case s.load():
		return strings.TrimSpace(fmt.Sprintf("load %s %d KiB x%d %s", p.Reading, p.Record>>10, p.Workers, s.From))
	}
	kind := "sleeps"
	if p.Spin {
		kind = "spins"
	}
	return strings.TrimSpace(
		fmt.Sprintf("%s %s %d KiB w%d b%d %s %s", p.Style, p.Reading, p.Record>>10, p.Workers, p.Batch, kind, s.From),
	)
}

const (
	fullLength  = 4 * time.Second
	shortLength = 2200 * time.Millisecond
	longLength  = 10 * time.Second // of phases in which a verdict can come too late (Targets.Verdict)
)

// draw draws a variant's parameters from its seed. Parameters with few values take turns (turn.go).
type draw struct {
	*rand.Rand
	name   string // of the case
	seed   uint64
	length time.Duration
}

// between draws a number from a range.
func (d *draw) between(low, high float64) float64 { return low + d.Float64()*(high-low) }

// whole draws an integer, both ends included.
func (d *draw) whole(low, high int) int { return low + d.IntN(high-low+1) }

// lasting draws a duration.
func (d *draw) lasting(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Float64()*float64(high-low)).Round(10*time.Microsecond)
}

// pick draws one of several choices.
func pick[T any](d *draw, choices ...T) T { return choices[d.IntN(len(choices))] }

// spins reports whether the training thread spins while the accelerator computes.
func (d *draw) spins() bool { return turn(d, accelerator, false, true) }
