package gpu

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// A panic in a call comes to the goroutine of the run, where it can be recovered. The next call is made.
func TestPanicInACall(t *testing.T) {
	r := newRun(&fakeDriver{}, newGrid(1e8, func(string, *sample.Sample, error) {}, newMemoryInUse()), nil)
	begin := func(job func()) (panicked any) {
		return panicOf(func() {
			if c := r.begin(time.Minute, job, func(bool) {}, func() {}); c.isUnderWay() {
				r.await(c, time.Minute)
			}
		})
	}
	if panicked := begin(func() { panic("broken") }); panicked != "broken" || len(r.calls) != 0 {
		t.Errorf("got %v, %d calls under way; want the panic and none", panicked, len(r.calls))
	}
	ran := false
	if panicked := begin(func() { ran = true }); panicked != nil || !ran {
		t.Errorf("the next call: got %v, ran %v; want it completed", panicked, ran)
	}
}

// A program that was stopped or got no CPU for long has not waited for the driver meanwhile.
func TestWaitingWhileStopped(t *testing.T) {
	r := newRun(&fakeDriver{}, newGrid(1e8, func(string, *sample.Sample, error) {}, newMemoryInUse()), nil)
	hung := false
	c := &call{returned: make(chan struct{}), limit: callTimeout, looked: sample.Now().Mono - time.Hour,
		onHang: func() { hung = true }}
	r.look(c)
	if hung || c.waited > maxLook {
		t.Errorf("stopped for an hour: got %v waited, hung %v; want at most %v", c.waited, hung, maxLook)
	}
	for range callTimeout / maxLook {
		c.looked -= maxLook
		r.look(c)
	}
	if !hung {
		t.Errorf("waited for %v: got no hang, want one", c.waited)
	}
}
