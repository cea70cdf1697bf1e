package scenario

import (
	"slices"

	"github.com/stallspan/stallspan/internal/window"
)

// Parts is how a window's time was spent, in seconds. The four parts add up to the window.
type Parts struct {
	Busy    float64 `json:"busy_s"`
	Storage float64 `json:"storage_s"`
	CPU     float64 `json:"cpu_s"`
	Other   float64 `json:"other_s"`

	Network float64 `json:"network_s,omitempty"` // part of Other: waiting for data of a server
}

// Total is the length of the window in seconds.
func (p Parts) Total() float64 { return p.Busy + p.Storage + p.CPU + p.Other }

// shares returns the parts of a window of one second.
func (p Parts) shares() Parts {
	total := p.Total()
	if total <= 0 {
		return Parts{}
	}
	return Parts{p.Busy / total, p.Storage / total, p.CPU / total, p.Other / total, p.Network / total}
}

// Margin is the minimum distance of a labelled window's truth from window.Thresholds, as a share of the window. The
// targets allow each part an error of that size, and the verdict must stay the same.
const Margin = 0.05

// Label returns the verdict that follows from a window's truth; "" if the truth is so near to a threshold that two
// verdicts would be right.
func (p Parts) Label() window.Verdict {
	s, t := p.shares(), window.Thresholds
	stalls := []float64{s.Storage, s.CPU, s.Network}
	slices.Sort(stalls)
	most, next, rest := stalls[2], stalls[1], s.Other-s.Network
	const m = Margin
	switch {
	case s.Busy >= t.Busy+m:
		return window.GPUBound
	case s.Busy > t.Busy-m:
		return ""
	case rest >= t.Other+m && rest-m >= t.Ratio*(most+m):
		return window.Unknown
	case rest > t.Other-m && rest+m > t.Ratio*(most-m), most < t.Stall+m:
		return ""
	case most+m < t.Ratio*(next-m):
		return window.Mixed
	case most-m < t.Ratio*(next+m):
		return ""
	case s.Storage == most:
		return window.StorageBound
	case s.Network == most:
		return window.NetworkBound
	}
	return window.CPUBound
}
