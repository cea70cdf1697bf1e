package sample

import (
	"testing"
	"time"
)

// A timer that fails has a successor: the sampling never stops by itself.
func TestBeatThatFails(t *testing.T) {
	b := newBeat(t.Context(), time.Millisecond)
	defer b.stop()
	kernel, ok := b.(*kernelBeat)
	if !ok {
		t.Skip("this kernel gives no timer")
	}
	_ = kernel.file.Close()
	for range 3 {
		if !b.wait() {
			t.Fatal("it ended by itself")
		}
	}
}
