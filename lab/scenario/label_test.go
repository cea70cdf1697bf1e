package scenario

import (
	"math/rand/v2"
	"testing"

	"github.com/stallspan/stallspan/internal/window"
)

func TestLabel(t *testing.T) {
	for _, c := range []struct {
		parts Parts
		want  window.Verdict
	}{
		{Parts{Busy: 3.9, Other: 0.1}, window.GPUBound},
		{Parts{Busy: 3.7, Storage: 0.3}, ""},
		{Parts{Busy: 2, Storage: 2}, window.StorageBound},
		{Parts{Busy: 1.1, Storage: 1, Other: 1.9}, ""},
		{Parts{Busy: 2, Storage: 1.5, CPU: 0.5}, ""},
		{Parts{Busy: 2, CPU: 1.9, Storage: 0.1}, window.CPUBound},
		{Parts{Busy: 1.8, CPU: 1.1, Storage: 1.1}, window.Mixed},
		{Parts{Other: 4}, window.Unknown},
		{Parts{Busy: 1, Other: 3}, window.Unknown},
		{Parts{}, ""},
	} {
		if got := c.parts.Label(); got != c.want {
			t.Errorf("%+v is %q, want %q", c.parts, got, c.want)
		}
	}
}

// thresholds is the verdict by the rules of package window.
func thresholds(p Parts) window.Verdict {
	s, t := p.shares(), window.Thresholds
	most := max(s.Storage, s.CPU)
	switch {
	case s.Busy >= t.Busy:
		return window.GPUBound
	case s.Other >= t.Other && s.Other >= t.Ratio*most:
		return window.Unknown
	case s.Storage >= t.Stall && s.Storage >= t.Ratio*s.CPU:
		return window.StorageBound
	case s.CPU >= t.Stall && s.CPU >= t.Ratio*s.Storage:
		return window.CPUBound
	case most >= t.Stall:
		return window.Mixed
	}
	return window.Unknown
}

// A ledger whose parts are each off by less than the margin must not change a labelled window's verdict. Otherwise the
// label would be stricter than the ledger's target.
func TestLabelsKeepTheirMargin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	labels := map[window.Verdict]int{}
	for range 200_000 {
		p := Parts{r.ExpFloat64(), r.ExpFloat64(), r.ExpFloat64(), r.ExpFloat64(), 0}.shares()
		label := p.Label()
		if label == "" {
			continue
		}
		labels[label]++
		q, parts := p, []*float64{}
		parts = append(parts, &q.Busy, &q.Storage, &q.CPU, &q.Other)
		r.Shuffle(4, func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		for i := 0; i < 4; i += 2 { // one part gains what another one loses
			off := min(r.Float64()*Margin, *parts[i])
			*parts[i] -= off
			*parts[i+1] += off
		}
		if got := thresholds(q); got != label {
			t.Fatalf("%+v is %s, and %+v would be %s", p, label, q, got)
		}
	}
	for _, v := range Verdicts {
		if labels[v] == 0 {
			t.Errorf("no window was %s", v)
		}
	}
}
