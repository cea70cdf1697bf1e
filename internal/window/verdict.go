package window

// Verdict names what a window's accelerator waited for.
type Verdict string

const (
	GPUBound     Verdict = "gpu_bound"
	StorageBound Verdict = "storage_bound"
	CPUBound     Verdict = "cpu_bound"
	Mixed        Verdict = "mixed"
	Unknown      Verdict = "unknown"
)

// Thresholds of the verdict, as shares of the window's GPU time. docs/verdicts.md explains each; a test compares the
// two.
var Thresholds = struct {
	Busy  float64 // gpu_bound from here on
	Stall float64 // a stall from here on matters
	Ratio float64 // storage_bound or cpu_bound when one stall is this many times the other
	Other float64 // unknown when idle time without a known cause reaches this, and twice the larger stall
	Slow  float64 // slow when storage took more than this
	Doubt float64 // unknown when the ledger is less certain than this
}{Busy: 0.9, Stall: 0.15, Ratio: 2, Other: 0.5, Slow: 0.5, Doubt: 0.2}

// shares are a ledger's parts as shares of its window; they add up to one.
type shares struct {
	busy, storage, cpu, other float64
}

func (s shares) verdict() Verdict {
	t := Thresholds
	most := max(s.storage, s.cpu)
	switch {
	case s.busy >= t.Busy:
		return GPUBound
	case s.other >= t.Other && s.other >= t.Ratio*most:
		return Unknown
	case s.storage >= t.Stall && s.storage >= t.Ratio*s.cpu:
		return StorageBound
	case s.cpu >= t.Stall && s.cpu >= t.Ratio*s.storage:
		return CPUBound
	case most >= t.Stall:
		return Mixed
	default:
		return Unknown
	}
}
