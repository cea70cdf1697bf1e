package switches

import "testing"

// TestRestsLate: a thread whose pauses are longer than pollEvery makes no record between two polls, and its next pause
// is looked at all the same.
func TestRestsLate(t *testing.T) {
	var s Source
	idleAt := func(from int) int {
		for n := from; n < 1000; n++ {
			if s.idles() {
				return n
			}
		}
		return -1
	}
	const want = int(idleAfter / pollEvery)
	if got := idleAt(1); got != want {
		t.Errorf("rests after %d empty polls, want %d", got, want)
	}
	for range want - 1 {
		if s.idles() {
			t.Error("rests at once after it was woken, want as late as before")
		}
	}
	s.held = append(s.held, record{}) // something happens
	if s.idles() {
		t.Error("rests while something happens")
	}
	s.held = nil
	if got := idleAt(1); got != want {
		t.Errorf("after a record: rests after %d empty polls, want %d", got, want)
	}
}
