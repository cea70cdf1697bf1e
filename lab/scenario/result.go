package scenario

import (
	"math"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// Result is one window of one variant: what was true and what was found.
type Result struct {
	Name    string         `json:"name"` // of the case, with the stage if it has several: "phase_change/2"
	Seed    uint64         `json:"seed"`
	Label   window.Verdict `json:"label"`  // the intended verdict
	About   string         `json:"about"`  // the variant in words
	Window  string         `json:"window"` // in the recording
	Truth   Truth          `json:"truth"`
	Got     Got            `json:"got"`
	Seconds float64        `json:"seconds"` // of the window

	Void     string   `json:"void,omitempty"` // why it does not count
	Problems []string `json:"problems,omitempty"`
}

// Truth is what the work measured itself, and its rerun from memory.
type Truth struct {
	Verdict window.Verdict `json:"verdict"` // by Parts.Label; "" for none
	Parts

	Speedup     float64 `json:"speedup,omitempty"` // measured by the rerun; 0 without one
	Unexplained float64 `json:"unexplained_s"`     // duration - rerun - storage: the error of the truth itself

	Raw      Waits  `json:"raw"`
	Rerun    *Waits `json:"rerun,omitempty"`          // the same work from memory
	Mismatch bool   `json:"rerun_mismatch,omitempty"` // which read something else

	// Thread time of all workers.
	ReadBlocked float64 `json:"read_blocked_s"` // asleep in reads
	ReadReady   float64 `json:"read_ready_s"`   // runnable in reads
	ReadCPU     float64 `json:"read_cpu_s"`     // running in reads
	DecodeReady float64 `json:"decode_ready_s"` // runnable in decoding

	// From the plan.
	Load     bool    `json:"load,omitempty"`
	Pool     bool    `json:"pool,omitempty"`      // several workers make each batch together
	Compute  float64 `json:"compute_s,omitempty"` // of a step
	Decode   float64 `json:"decode_s,omitempty"`  // of a record
	Steps    int     `json:"steps,omitempty"`
	Checksum uint32  `json:"checksum,omitempty"`
}

// Waits are the program's own figures in seconds: what its training thread waited for.
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

// Got is what the monitor reported.
type Got struct {
	Verdict window.Verdict `json:"verdict"`
	Parts
	Speedup     float64 `json:"speedup,omitempty"` // predicted; 0 if unknown
	Uncertainty float64 `json:"uncertainty_ratio,omitempty"`
	Finding     string  `json:"finding,omitempty"`

	// VerdictAfter is how many seconds after its start the running window's verdict became right permanently; absent if it
	// never did.
	VerdictAfter *float64 `json:"verdict_after_s,omitempty"`

	// ChangeAfter is for windows around several phases: how many seconds after the start of the last phase the verdict of
	// the last seconds became that phase's permanently. It is the phase's length if it never did, and absent if the phase
	// was too short to decide.
	ChangeAfter *float64 `json:"change_after_s,omitempty"`

	Device *Device `json:"device,omitempty"` // the storage's own disk; absent without one
}

// Ledger is a ledger's error: the error of its worst part as a share of the window.
//
// If several workers make each batch together, log and rerun may differ on what was waited for. The log charges a
// step's wait to the workers that finished its batch, and these decode while the others read for the next batches. From
// memory that time disappears as well. The truth is then the range between log and rerun, and the error is what lies
// outside.
func (r *Result) Ledger() float64 {
	open := 0.0
	if r.Truth.Pool && r.Truth.Rerun != nil {
		open = r.Truth.Unexplained
	}
	return r.off(open)
}

// LedgerByLog is the same error by the log alone.
func (r *Result) LedgerByLog() float64 { return r.off(0) }

// off is the ledger's error if open seconds may belong to storage or to the CPU.
func (r *Result) off(open float64) float64 {
	if r.Seconds <= 0 {
		return 0
	}
	t, g := r.Truth.Parts, r.Got.Parts
	return max(math.Abs(t.Busy-g.Busy), math.Abs(t.Other-g.Other),
		outside(g.Storage, t.Storage, t.Storage+open), outside(g.CPU, t.CPU-open, t.CPU)) / r.Seconds
}

// outside is the distance of a value from the interval between two bounds in any order.
func outside(v, a, b float64) float64 { return max(0, min(a, b)-v, v-max(a, b)) }

// BusyError is the error of the accelerator's busy time as a share of the window.
func (r *Result) BusyError() float64 {
	if r.Seconds <= 0 {
		return 0
	}
	return math.Abs(r.Truth.Busy-r.Got.Busy) / r.Seconds
}

// SpeedupError is the error of the predicted speed-up relative to the measured one; false without both.
func (r *Result) SpeedupError() (float64, bool) {
	if r.Truth.Speedup <= 0 || r.Got.Speedup <= 0 {
		return 0, false
	}
	return math.Abs(r.Got.Speedup/r.Truth.Speedup - 1), true
}

// Right reports whether the verdict is the label.
func (r *Result) Right() bool { return r.Got.Verdict == r.Label }

// Long reports whether the window is long enough for its ledger to count.
func (r *Result) Long() bool { return r.Seconds >= minLedger.Seconds() }

// minLedger is the minimum length of a window whose ledger counts.
const minLedger = 2 * time.Second
