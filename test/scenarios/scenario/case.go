package scenario

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/scenarios/pipeline"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// Variant is one way in which a case can be: where the files lie, what is done with them, and what else goes on.
type Variant struct {
	Name string
	Seed uint64

	Kind    slowdisk.Kind // of the disk on which the files lie
	Options slowdisk.Options
	Files   int
	Size    int64 // bytes a file
	Model   int64 // bytes of the model file, at most; 0 for none

	Stages []Stage
	Whole  window.Verdict // of one more window around all stages; "" for none
	Beside []Beside
}

// Stage is the work of one window.
type Stage struct {
	Label  window.Verdict
	Length time.Duration // about

	// Plan is what is done, but for what follows from measuring the storage: files, compute time, steps, and the decode
	// time where the aim says a share for it. Without a batch it is the load of the model.
	Plan Plan
	Aim  Aim
	From From
	Idle bool // instead of all that: nothing is done

	size  int64 // bytes of each file
	saves bool  // what the storage is not asked for while the accelerator computes, it gives faster later
}

// Plan is the program's.
type Plan = pipeline.Plan

// From says where a stage's files are when it begins.
type From string

const (
	Cold   From = ""       // on the slow disk, and in no cache
	Cached From = "cached" // on the disk, and in the page cache
	Copied From = "copied" // on tmpfs
)

// Aim is what a window's time is to be spent on, in shares. Storage takes what is left. Where batches are made ahead, a
// Busy of 1 or more makes the accelerator the slowest part: it computes Busy times as long as a batch takes to be made.
type Aim struct {
	Busy float64
	CPU  float64 // 0: Plan.Decode is set
	Sync float64
}

// Beside is what somebody else does at the same time, in another cgroup.
type Beside struct {
	Kind    slowdisk.Kind // of a disk of its own; "" for the case's
	Options slowdisk.Options
	Size    int64          // bytes of the file that the noise is about
	Noise   pipeline.Noise // without Files
	Load    bool           // instead: what the case loads, from a file of its own
}

// cold says that the stage waits for the slow disk, so that a rerun from memory tells something.
func (s *Stage) cold() bool { return !s.Idle && (s.From == Cold || s.Plan.CheckpointEvery > 0) }

// load says that the stage is a model load.
func (s *Stage) load() bool { return !s.Idle && s.Plan.Batch == 0 }

// About is the variant in words.
func (v *Variant) About() string {
	words := []string{string(v.Kind)}
	for i := range v.Stages {
		words = append(words, v.Stages[i].about())
	}
	for _, b := range v.Beside {
		if b.Load {
			words = append(words, "beside another load")
		} else {
			words = append(words, fmt.Sprintf("beside %s x%d", b.Noise.Reading, b.Noise.Workers))
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
	return strings.TrimSpace(fmt.Sprintf("%s %s %d KiB w%d b%d %s %s", p.Style, p.Reading, p.Record>>10, p.Workers, p.Batch, kind, s.From))
}

const (
	fullLength  = 4 * time.Second
	shortLength = 2200 * time.Millisecond
	longLength  = 10 * time.Second // of phases in which a verdict can be too late (Targets.Verdict)
)

// draw is what a variant is made of: its seed's numbers. What there are only a few of takes turns (turn.go).
type draw struct {
	*rand.Rand
	name   string // of the case
	seed   uint64
	length time.Duration
}

// between draws from a range.
func (d *draw) between(low, high float64) float64 { return low + d.Float64()*(high-low) }

// whole draws a whole number, the ends included.
func (d *draw) whole(low, high int) int { return low + d.IntN(high-low+1) }

// lasting draws a duration.
func (d *draw) lasting(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Float64()*float64(high-low)).Round(10*time.Microsecond)
}

// pick draws one of a few.
func pick[T any](d *draw, choices ...T) T { return choices[d.IntN(len(choices))] }

// spins says whether the accelerator spins.
func (d *draw) spins() bool { return turn(d, accelerator, false, true) }
