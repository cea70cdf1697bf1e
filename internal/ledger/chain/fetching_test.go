package chain

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// TestFetching: of a thread's system time, no more counts as fetching than its bytes can take.
func TestFetching(t *testing.T) {
	watched := func(bytes uint64) *sample.Watched {
		return &sample.Watched{Ran: time.Second, System: 300 * time.Millisecond, Fetched: bytes, Chars: bytes}
	}
	for _, test := range []struct {
		what      string
		bytes     uint64
		low, high float64
	}{
		{"nothing was read, as in fsync", 0, 0, 0},
		{"80 KiB", 80 << 10, 0.003, 0.005},
		{"500 MB", 500e6, 0.15, 0.25},
	} {
		var k kernelShare
		if got := k.fetching(watched(test.bytes), true); got < test.low || got > test.high {
			t.Errorf("%s: got %.3f, want %.3f to %.3f", test.what, got, test.low, test.high)
		}
	}
}
