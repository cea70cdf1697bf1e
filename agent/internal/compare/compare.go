// Package compare compares two reports window by window: what got slower, and which part of its time explains it. It
// only calculates; its callers read files and print tables.
package compare

import (
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

// Two durations are about the same if the longer is less than 1 + Noise times the shorter, or less than Grain seconds
// longer. Two runs of the same program differ by that much.
const (
	Noise = 0.05
	Grain = 0.01
)

// Change classifies B's duration compared with A's.
type Change string

const (
	Same    Change = "same" // about the same
	Faster  Change = "faster"
	Slower  Change = "slower"
	Unknown Change = "unknown" // one of them was cut short
)

// Comparison is the result. docs/commands.md describes its JSON.
type Comparison struct {
	Windows []*Pair `json:"windows"` // in the order of A
	OnlyA   []Name  `json:"only_in_a,omitempty"`
	OnlyB   []Name  `json:"only_in_b,omitempty"`
	Whole   *Pair   `json:"whole,omitempty"` // the whole run, or all of Windows together; absent where nothing compares
	Finding string  `json:"finding"`
}

// Name identifies a window that only one report has.
type Name struct {
	Kind  window.Kind `json:"kind"`
	Label string      `json:"label"`
}

// Pair is one window in both reports.
type Pair struct {
	Kind       window.Kind `json:"kind,omitempty"` // of A; absent for the whole
	Label      string      `json:"label"`          // of A
	LabelB     string      `json:"label_b,omitempty"`
	A          Side        `json:"a"`
	B          Side        `json:"b"`
	Change     Change      `json:"change"`
	Difference float64     `json:"difference_s"` // B less A
	// A's duration over B's; absent where B's is less than a nanosecond
	Speedup     *float64   `json:"speedup,omitempty"`
	Ledger      string     `json:"ledger,omitempty"`       // GPULedger or ProcessLedger
	Parts       []Part     `json:"parts,omitempty"`        // absent where the two ledgers do not compare
	ExplainedBy string     `json:"explained_by,omitempty"` // the part that changed most, in the direction of the duration
	Disks       []DiskPair `json:"disks,omitempty"`        // if storage is among the reasons
	Finding     string     `json:"finding"`                // one sentence
	Why         string     `json:"why,omitempty"`          // the reason in it
	Notes       []string   `json:"notes,omitempty"`        // sentences

	within string // id of A's epoch that has A's window; "" for none
}

// Side is one report's window of a pair.
type Side struct {
	ID           string         `json:"id,omitempty"`
	Duration     float64        `json:"duration_s"`
	Verdict      window.Verdict `json:"verdict,omitempty"`
	Slow         bool           `json:"slow,omitempty"`
	Unfinished   bool           `json:"unfinished,omitempty"`
	GPUs         int            `json:"gpus,omitempty"`
	SpeedupBound *float64       `json:"speedup_bound,omitempty"`
	SpeedupLow   float64        `json:"speedup_low,omitempty"`
	SpeedupHigh  float64        `json:"speedup_high,omitempty"`
}

// Compare compares two reports as Read returns them.
func Compare(a, b *explain.Document) *Comparison {
	matches, onlyA, onlyB := match(a.Windows, b.Windows)
	c := &Comparison{Windows: []*Pair{}, OnlyA: names(onlyA), OnlyB: names(onlyB)}
	for _, m := range matches {
		c.Windows = append(c.Windows, pair(m.a, m.b))
	}
	c.Whole = c.whole(a.Run, b.Run)
	c.Finding = c.finding()
	return c
}

// SlowerBy lists the windows that took more than 1 + share times as long in B, and at least Grain longer.
func (c *Comparison) SlowerBy(share float64) (slower []*Pair) {
	for _, p := range c.Windows {
		if p.Change != Unknown && p.Difference >= Grain && p.B.Duration > p.A.Duration*(1+share) {
			slower = append(slower, p)
		}
	}
	return slower
}

// Judged reports whether any window could be compared.
func (c *Comparison) Judged() bool { return c.Whole != nil }

func pair(a, b *explain.Report) *Pair {
	p := &Pair{Kind: a.Kind, Label: a.Label(), A: side(a), B: side(b), within: a.Within}
	if label := b.Label(); label != p.Label {
		p.LabelB = label
	}
	p.judge(ledgerOf(a), ledgerOf(b))
	p.disks(a.Disks, b.Disks)
	p.note(a, b)
	return p
}

func side(w *explain.Report) Side {
	s := Side{ID: w.ID, Duration: w.Duration, Verdict: w.Verdict, Slow: w.Slow, Unfinished: w.Unfinished,
		SpeedupBound: w.SpeedupBound, SpeedupLow: w.SpeedupLow, SpeedupHigh: w.SpeedupHigh}
	if w.GPU != nil {
		s.GPUs = len(w.GPU.IDs)
	}
	return s
}

// judge fills in the results of the two durations and ledgers.
func (p *Pair) judge(a, b *ledger) {
	p.Difference = p.B.Duration - p.A.Duration
	p.Change = change(p.A.Duration, p.B.Duration)
	if p.A.Unfinished || p.B.Unfinished {
		p.Change = Unknown
	}
	if p.B.Duration >= 1e-9 {
		ratio := p.A.Duration / p.B.Duration
		p.Speedup = &ratio
	}
	if p.Parts = parts(a, b); p.Parts != nil {
		p.Ledger = a.kind
	}
	p.explain()
}

func change(a, b float64) Change {
	switch {
	case max(a, b)-min(a, b) < Grain || max(a, b) < (1+Noise)*min(a, b):
		return Same
	case b < a:
		return Faster
	default:
		return Slower
	}
}

// explain finds the reasons for the difference.
func (p *Pair) explain() {
	because := p.reasons()
	p.Why = why(p.Ledger, because)
	if len(because) > 0 && (p.Change == Faster || p.Change == Slower) {
		p.ExplainedBy = because[0].Part
	}
	p.Finding = p.sentence()
}

func (p *Pair) reasons() []Part {
	if p.Change == Unknown {
		return nil
	}
	return reasons(p.Parts, p.Difference, max(p.A.Duration, p.B.Duration), p.Change == Same)
}
