package window

// Verdict names what a window's GPU waited for.
type Verdict string

const (
	GPUBound     Verdict = "gpu_bound"
	StorageBound Verdict = "storage_bound"
	NetworkBound Verdict = "network_bound"
	CPUBound     Verdict = "cpu_bound"
	WaitBound    Verdict = "wait_bound" // for what OtherReasons name
	Mixed        Verdict = "mixed"
	Unknown      Verdict = "unknown"
)

// Valid reports whether v is one of the verdicts.
func (v Verdict) Valid() bool {
	switch v {
	case GPUBound, StorageBound, NetworkBound, CPUBound, WaitBound, Mixed, Unknown:
		return true
	}
	return false
}

// Shares are the parts of a ledger as shares of its time. They add up to one.
type Shares struct {
	Busy, Storage, CPU, Other float64

	Ready   float64 // without a core; no part of CPU
	Network float64 // part of Other
}

// Work is CPU stall as the rules take it, with the time without a core.
func (s Shares) Work() float64 { return s.CPU + s.Ready }

// Verdict applies the rule of docs/verdicts.md. Where other is the limit, the reasons of it are not known here.
func (s Shares) Verdict() Verdict {
	t := &Thresholds
	work := s.Work()
	largest := max(s.Storage, work, s.Network)
	rest := s.Other - s.Network
	alone := func(stall, one, another float64) bool {
		return stall >= t.Stall && stall >= t.Ratio*max(one, another)
	}
	switch {
	case s.Busy >= t.Busy:
		return GPUBound
	case rest >= t.Other && rest >= t.Ratio*largest:
		return Unknown
	case alone(s.Storage, work, s.Network):
		return StorageBound
	case alone(s.Network, work, s.Storage):
		return NetworkBound
	case alone(work, s.Storage, s.Network):
		return CPUBound
	case largest >= t.Stall:
		return Mixed
	default:
		return Unknown
	}
}

// mayWait reports whether CPU work would not be the limit if all unexplained idle time were waiting for storage.
func (s Shares) mayWait() bool {
	return s.Other >= Thresholds.Stall && s.Work() < Thresholds.Ratio*(s.Storage+s.Other)
}
