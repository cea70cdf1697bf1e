package chain

import (
	"math"
	"testing"
	"time"
)

// TestLongShare adds more running time at once than the product of two durations can hold.
func TestLongShare(t *testing.T) {
	var s share
	s.add(time.Minute, 3*time.Minute)
	if want := 1500 * time.Millisecond; s.system != want || s.user != want/3 {
		t.Errorf("got %v in user mode and %v in the kernel, want 500ms and %v", s.user, s.system, want)
	}
	if got := s.of(); math.Abs(got-0.75) > 0.01 {
		t.Errorf("got a share of the kernel of %.3f, want about 0.75", got)
	}
}
