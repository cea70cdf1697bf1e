package scenario

import (
	"math"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// Result is one window of one variant: what was true and what was found.
type Result struct {
	Name    string         `json:"name"` // of the case, and the stage where it has several: "phase_change/2"
	Seed    uint64         `json:"seed"`
	Label   window.Verdict `json:"label"`  // what the case was made to be
	About   string         `json:"about"`  // the variant in words
	Window  string         `json:"window"` // in the recording
	Truth   Truth          `json:"truth"`
	Got     Got            `json:"got"`
	Seconds float64        `json:"seconds"` // of the window

	Void     string   `json:"void,omitempty"` // why it counts for nothing
	Problems []string `json:"problems,omitempty"`
}

// Truth is what the work itself knows of a window, and its rerun from memory.
type Truth struct {
	Verdict window.Verdict `json:"verdict"` // by Parts.Label; "" for none
	Parts

	Speedup     float64 `json:"speedup,omitempty"` // that the rerun gave; 0 where there was none
	Unexplained float64 `json:"unexplained_s"`     // duration - rerun - storage: the truth's own error

	Raw      Waits  `json:"raw"`
	Rerun    *Waits `json:"rerun,omitempty"`          // the same work from memory
	Mismatch bool   `json:"rerun_mismatch,omitempty"` // which read something else

	// Thread time of all workers.
	ReadBlocked float64 `json:"read_blocked_s"` // asleep in reads
	ReadReady   float64 `json:"read_ready_s"`   // ready there without a CPU
	ReadCPU     float64 `json:"read_cpu_s"`     // on one
	DecodeReady float64 `json:"decode_ready_s"` // ready without a CPU in decoding

	// As the plan was made.
	Load     bool    `json:"load,omitempty"`
	Pool     bool    `json:"pool,omitempty"`      // several workers make each batch together
	Compute  float64 `json:"compute_s,omitempty"` // of a step
	Decode   float64 `json:"decode_s,omitempty"`  // of a record
	Steps    int     `json:"steps,omitempty"`
	Checksum uint32  `json:"checksum,omitempty"`
}

// Waits are the program's own figures, in seconds: what its training thread waited for.
type Waits struct {
	Duration float64 `json:"duration_s"`
	Busy     float64 `json:"busy_s"`
	Read     float64 `json:"read_s"`
	Decode   float64 `json:"decode_s"`
	Write    float64 `json:"write_s"`
	Sync     float64 `json:"sync_s"`
	Ready    float64 `json:"ready_s"`
	Other    float64 `json:"other_s"`
}

// Got is what the monitor found.
type Got struct {
	Verdict window.Verdict `json:"verdict"`
	Parts
	Speedup     float64 `json:"speedup,omitempty"` // predicted; 0 where it is not known
	Uncertainty float64 `json:"uncertainty_ratio,omitempty"`
	Finding     string  `json:"finding,omitempty"`

	// VerdictAfter is how many seconds after its beginning the running window's verdict was right and stayed so; absent
	// where it never was.
	VerdictAfter *float64 `json:"verdict_after_s,omitempty"`

	// ChangeAfter is, of a window around several phases, how many seconds after the last one's beginning the running
	// window's verdict about its last seconds was that phase's and stayed so; its length where it never was, and absent
	// where that was too short to tell.
	ChangeAfter *float64 `json:"change_after_s,omitempty"`

	Device *Device `json:"device,omitempty"` // the storage's own disk; absent where it has none
}

// Ledger is a ledger's error: that of the part that is furthest off, as a share of the window.
//
// Where several workers make each batch together, log and rerun may differ on what was waited for: the log gives a step's
// wait to those that were at its batch last, and they decode, while the others read on for the next ones. From memory that
// time is gone, too. What is right then lies between the two, and the error is what lies outside.
func (r *Result) Ledger() float64 {
	open := 0.0
	if r.Truth.Pool && r.Truth.Rerun != nil {
		open = r.Truth.Unexplained
	}
	return r.off(open)
}

// LedgerByLog is the same error by the log alone.
func (r *Result) LedgerByLog() float64 { return r.off(0) }

// off is the ledger's error where open, in seconds, may be storage's as well as the CPU's.
func (r *Result) off(open float64) float64 {
	if r.Seconds <= 0 {
		return 0
	}
	t, g := r.Truth.Parts, r.Got.Parts
	return max(math.Abs(t.Busy-g.Busy), math.Abs(t.Other-g.Other),
		outside(g.Storage, t.Storage, t.Storage+open), outside(g.CPU, t.CPU-open, t.CPU)) / r.Seconds
}

// outside is how far a value lies outside of what two bounds, in any order, enclose.
func outside(v, a, b float64) float64 { return max(0, min(a, b)-v, v-max(a, b)) }

// BusyError is how far the accelerator's busy time is off, as a share of the window.
func (r *Result) BusyError() float64 {
	if r.Seconds <= 0 {
		return 0
	}
	return math.Abs(r.Truth.Busy-r.Got.Busy) / r.Seconds
}

// SpeedupError is how far the predicted speed-up is off, relative to the measured one; false where there is nothing to
// compare.
func (r *Result) SpeedupError() (float64, bool) {
	if r.Truth.Speedup <= 0 || r.Got.Speedup <= 0 {
		return 0, false
	}
	return math.Abs(r.Got.Speedup/r.Truth.Speedup - 1), true
}

// Right says that the verdict is the label's.
func (r *Result) Right() bool { return r.Got.Verdict == r.Label }

// Long says that the window is long enough for its ledger to be held to account.
func (r *Result) Long() bool { return r.Seconds >= shortestLedger.Seconds() }

// shortestLedger is from which length on a ledger counts.
const shortestLedger = 2 * time.Second
