package sample

import (
	"testing"
	"time"
)

// After a failure of the timer another one takes over.
func TestFailingBeat(t *testing.T) {
	b := newBeat(t.Context(), time.Millisecond)
	defer b.stop()
	kernel, ok := b.(*kernelBeat)
	if !ok {
		t.Skip("this kernel has no timerfd")
	}
	_ = kernel.file.Close()
	for range 3 {
		if !b.wait() {
			t.Fatal("got the end of the beat, want further beats")
		}
	}
}
