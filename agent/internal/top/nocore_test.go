package top

import (
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// TestNoCore: time without a core is no time on the CPU, in numbers and in the bar.
func TestNoCore(t *testing.T) {
	r := &window.Report{Ledger: window.Ledger{Split: true, CPU: 8300 * time.Millisecond, Ready: 5700 * time.Millisecond,
		Storage: 100 * time.Millisecond, Other: 1600 * time.Millisecond}}
	r.Scope, r.End.Mono = window.Process, 10*time.Second
	l := newLedger(r)
	line := ledgerLine("train", &l)
	if want := "on CPU 26 %, storage 1 %, no core 57 %, other 16 %"; !strings.Contains(line.text, want) {
		t.Errorf("got %q, want %q", line.text, want)
	}
	sum := 0.0
	for _, part := range line.parts {
		sum += part
	}
	if sum < 0.999 || sum > 1.001 {
		t.Errorf("got parts %v, want a sum of 1", *line.parts)
	}
}
