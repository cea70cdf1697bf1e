// Package ledger divides the time of jobs on GPUs into busy, storage stall, CPU stall and other. It reads the history
// and adds running totals to it.
package ledger

import (
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// Estimator keeps a running total for each target. Totals are cumulative like counters, so the ledger of a window is a
// difference between two moments, however long the window is. An Estimator is not safe for concurrent use.
type Estimator interface {
	// SetTargets replaces the targets. A target that stays keeps its totals.
	SetTargets(targets []Target)

	// Advance divides the time up to the newest moment that every source has reached, and adds the totals to the history.
	// edges are in the order of their time. Advance adds the totals at each edge that it reaches and returns the number of
	// these edges. Without edges it may wait until more has come together. The error is history.ErrFull if a target found
	// no room.
	Advance(edges []history.Point) (reached int, err error)

	// Learn takes over what the scheduler reported. The estimator copies what it keeps.
	Learn(s *sample.Schedule)

	// Look takes over what threads were in at random moments. The estimator copies what it keeps.
	Look(m *sample.Moments)

	// Waits lists what the leading thread of the target with that ID waited for, as other, from one moment to another.
	Waits(id string, from, to time.Duration) Waits
	// Holds lists its long waits for storage in that time.
	Holds(id string, from, to time.Duration) []Hold

	// Steps returns the steps of the loop of the thread that led from one moment to another, if they are known well
	// enough. It may have ended since.
	Steps(id string, from, to time.Duration) (Steps, bool)

	// Estimate adds the present estimate of the totals at an edge to the edge, and keeps no other trace of it.
	Estimate(edge history.Point)
}

// Target is what one ledger accounts for: one job on one GPU.
type Target struct {
	Job      string // "" for the whole machine
	Pressure string // the sample.Pressure scope that contains the job
	Own      bool   // that scope contains this job and nothing else
	GPU      string // hw.id; "" without a GPU

	// Remote: the job has had files open that are on no disk of this machine. It may become true later.
	Remote bool

	// Leader is the thread that drives the GPU, or the first thread of the program; 0 if unknown. It may change.
	Leader int
}

// ID returns the key of the target's columns in the history.
func (t Target) ID() string { return ID(t.Job, t.GPU) }

// same reports whether both are the same job on the same GPU. Remote and Leader may differ.
func (t Target) same(as Target) bool {
	t.Remote, t.Leader = as.Remote, as.Leader
	return t == as
}

// ID returns the key of the ledger of one job on one GPU.
func ID(job, gpu string) string { return job + "\x00" + gpu }
