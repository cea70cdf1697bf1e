package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/stallspan/stallspan/internal/explain"
)

// The parts of a ledger, as the report's keys have them without their "_s".
const (
	Busy    = "busy"   // a GPU worked
	OnCPU   = "on_cpu" // without a GPU: the program was on the CPU
	Storage = "storage"
	CPU     = "cpu"
	Ready   = "ready" // for a CPU, and without one
	Other   = "other"
)

// The kinds of ledger.
const (
	GPULedger     = "gpu"     // of the time of GPUs
	ProcessLedger = "process" // of the program's own
)

// ledger is where a window's time went, as the mean of its GPUs if it has any. The parts add up to its duration.
type ledger struct {
	kind  string
	parts []share
}

type share struct {
	name    string
	seconds float64
}

// ledgerOf returns nil if the report has no ledger.
func ledgerOf(w *explain.Report) *ledger {
	switch {
	case w.Stall == nil:
		return nil
	case w.GPU != nil && w.Stall.CPU != nil:
		n := float64(max(1, len(w.GPU.IDs)))
		return &ledger{GPULedger, []share{{Busy, w.GPU.Busy / n}, {Storage, w.Stall.Storage / n},
			{CPU, *w.Stall.CPU / n}, {Ready, w.Stall.Ready / n}, {Other, w.Stall.Other / n}}}
	case w.GPU == nil && w.Process != nil:
		return &ledger{ProcessLedger, []share{{OnCPU, w.Process.OnCPU}, {Ready, w.Stall.Ready}, {Storage, w.Stall.Storage},
			{Other, w.Stall.Other}}}
	}
	return nil
}

// Part is one part of a ledger in both reports, in seconds, as the mean of the GPUs.
type Part struct {
	Part       string  `json:"part"`
	A          float64 `json:"a_s"`
	B          float64 `json:"b_s"`
	Difference float64 `json:"difference_s"` // B less A
}

// parts compares two ledgers. The differences add up to that of the durations. It returns nil if a ledger is missing,
// or if one is of GPUs and the other of the program's own time.
func parts(a, b *ledger) []Part {
	if a == nil || b == nil || a.kind != b.kind {
		return nil
	}
	var out []Part
	for i := range a.parts {
		name, from, to := a.parts[i].name, a.parts[i].seconds, b.parts[i].seconds
		if name != Ready || from+to > 0 { // it is rare
			out = append(out, Part{name, from, to, to - from})
		}
	}
	return out
}

// minShare is the minimum share of a difference at which a part is named.
const minShare = 0.2

// reasons are the parts that make up most of a difference, the largest first, and then those that offset it by as much.
// If the durations are about the same, they are the parts that replaced each other.
func reasons(all []Part, difference, scale float64, same bool) []Part {
	low := minShare * math.Abs(difference)
	if same {
		low = Noise * scale
	}
	named := slices.DeleteFunc(slices.Clone(all), func(p Part) bool {
		return math.Abs(p.Difference) < max(low, Grain)
	})
	slices.SortStableFunc(named, func(a, b Part) int {
		along := func(p Part) float64 {
			if same {
				return math.Abs(p.Difference)
			}
			return p.Difference * difference // positive: it goes the same way
		}
		return cmp.Compare(along(b), along(a))
	})
	return named
}
