package explain

import (
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// phase is a part of a detected load, with its own ledger.
type phase struct {
	Name     string         `json:"name"`
	Start    time.Time      `json:"start"`
	Duration float64        `json:"duration_s"`
	Bytes    uint64         `json:"bytes,omitempty"`
	Rate     float64        `json:"gib_per_s,omitempty"`
	Busy     float64        `json:"busy_s,omitempty"`
	Storage  float64        `json:"storage_s"`
	CPU      float64        `json:"cpu_s"`
	Ready    float64        `json:"ready_s,omitempty"`
	Other    float64        `json:"other_s"`
	Verdict  window.Verdict `json:"verdict"`
}

func newPhase(p *window.Phase, r *window.Report) phase {
	out := phase{
		Name: p.Name, Start: r.Start.Wall, Duration: p.Duration().Seconds(), Bytes: p.Bytes, Busy: r.Busy.Seconds(),
		Storage: r.Storage.Seconds(), CPU: (r.CPU - r.Ready).Seconds(), Ready: r.Ready.Seconds(),
		Other: r.Other.Seconds(), Verdict: r.Verdict,
	}
	if seconds := p.Duration().Seconds(); seconds > 0 {
		out.Rate = float64(p.Bytes) / (1 << 30) / seconds
	}
	return out
}
