package window

// Verdict names what a window's GPU waited for.
type Verdict string

const (
	GPUBound     Verdict = "gpu_bound"
	StorageBound Verdict = "storage_bound"
	CPUBound     Verdict = "cpu_bound"
	Mixed        Verdict = "mixed"
	Unknown      Verdict = "unknown"
)

// Valid reports whether v is one of the verdicts.
func (v Verdict) Valid() bool {
	return v == GPUBound || v == StorageBound || v == CPUBound || v == Mixed || v == Unknown
}

// Thresholds of the verdict, as shares of the window's GPU time. docs/verdicts.md has the same numbers; a test
// compares.
var Thresholds = struct {
	Busy  float64 // gpu_bound from here
	Stall float64 // the smallest stall that counts
	Ratio float64 // storage_bound or cpu_bound if one stall is this many times the other
	Other float64 // unknown if unexplained idle time reaches this, and Ratio times the larger stall
	Slow  float64 // slow if storage took more than this
	Doubt float64 // unknown if the ledger is less certain than this
}{Busy: 0.9, Stall: 0.15, Ratio: 2, Other: 0.5, Slow: 0.5, Doubt: 0.2}

// Shares are the parts of a ledger as shares of its time. They add up to one.
type Shares struct {
	Busy, Storage, CPU, Other float64
}

// Verdict applies the rule of docs/verdicts.md.
func (s Shares) Verdict() Verdict {
	t := &Thresholds
	larger := max(s.Storage, s.CPU)
	switch {
	case s.Busy >= t.Busy:
		return GPUBound
	case s.Other >= t.Other && s.Other >= t.Ratio*larger:
		return Unknown
	case s.Storage >= t.Stall && s.Storage >= t.Ratio*s.CPU:
		return StorageBound
	case s.CPU >= t.Stall && s.CPU >= t.Ratio*s.Storage:
		return CPUBound
	case larger >= t.Stall:
		return Mixed
	default:
		return Unknown
	}
}

// mayWait reports whether CPU work would not be the limit if all unexplained idle time were waiting for storage.
func (s Shares) mayWait() bool {
	return s.Other >= Thresholds.Stall && s.CPU < Thresholds.Ratio*(s.Storage+s.Other)
}
