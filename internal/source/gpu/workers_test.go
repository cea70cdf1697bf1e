package gpu

import (
	"testing"
	"time"
)

// A panic on the driver's thread comes to the goroutine that waits for it, where it can be recovered. The thread ends.
func TestPanicOnTheThread(t *testing.T) {
	var w workers
	do := func(job func()) (result outcome, panicked any) {
		panicked = panicOf(func() {
			tick := func() time.Duration { return time.Minute }
			result = w.do(t.Context(), time.Minute, noLonger, time.Minute, tick, job, func() {})
		})
		return result, panicked
	}
	if _, panicked := do(func() { panic("broken") }); panicked != "broken" || w.active != nil {
		t.Errorf("got %v, worker %v; want the panic and no worker", panicked, w.active)
	}
	ran := false
	if result, panicked := do(func() { ran = true }); result != completed || panicked != nil || !ran {
		t.Errorf("the next job: got %v, %v, ran %v; want it completed", result, panicked, ran)
	}
	w.end(func() {})
}
