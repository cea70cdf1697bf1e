package switches

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestFetching(t *testing.T) {
	const ms = time.Millisecond
	tests := map[string]struct {
		user, system time.Duration
		e            sample.ThreadEvent
		least, most  time.Duration
	}{
		"nothing fetched":   {0, 10 * ms, sample.ThreadEvent{Chars: 1 << 20}, 0, 0},
		"the kernel's work": {0, 200 * ms, sample.ThreadEvent{Fetched: 1 << 20}, 9 * ms, 10 * ms},
		"its copies stay":   {0, 200 * ms, sample.ThreadEvent{Fetched: 20 << 20, Chars: 20 << 20}, 4 * ms, 6 * ms},
		"its own work":      {200 * ms, 0, sample.ThreadEvent{Fetched: 1 << 20}, 0, 1 * ms},
	}
	for name, test := range tests {
		var one, all kernelShare
		got := one.fetching(&all, 10*ms, test.user, test.system, &test.e)
		if got < test.least || got > test.most {
			t.Errorf("%s: got %v of 10 ms, want %v to %v", name, got, test.least, test.most)
		}
	}
}

// TestLongShare adds more running time at once than the product of two durations can hold.
func TestLongShare(t *testing.T) {
	var k kernelShare
	k.add(time.Minute, 3*time.Minute)
	if want := 1500 * time.Millisecond; k.system != want || k.user != want/3 {
		t.Errorf("got %v in user mode and %v in the kernel, want 500ms and %v", k.user, k.system, want)
	}
}
