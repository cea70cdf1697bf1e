package gpu

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// The memory of a watched GPU is known a tenth of a second later, at the cost of one call each. That of others is read
// once a second, and rows and other calls stay as they are.
func TestWatchMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		a, b := d.gpu("a", 0.3), d.gpu("b", 0.3)
		p := startRun(t.Context(), d)
		time.Sleep(5*time.Second + 50*time.Millisecond)
		calls, memories := d.utilizationCalls(), map[string]int{}
		d.set(func() {
			a.onMemory = func() { memories["a"]++ }
			b.onMemory = func() { memories["b"]++ }
		})
		stop := sample.Now().Mono + 3*time.Second
		p.WatchMemory([]string{"a", "unknown"}, stop)
		for i := range 25 {
			used := uint64(i+1) << 20
			d.set(func() { a.used = used })
			time.Sleep(110 * time.Millisecond)
			got, at := p.Memory("a")
			if got != 1+used || sample.Now().Mono-at > 110*time.Millisecond {
				t.Fatalf("after %d looks: got %d bytes of %v ago, want %d of 110ms at most", i, got, sample.Now().Mono-at, 1+used)
			}
		}
		if n := d.utilizationCalls() - calls; n > 2*3 {
			t.Errorf("got %d lists of samples in 2.75 s, want those of each second", n)
		}
		d.set(func() {
			if memories["a"] < 25 || memories["a"] > 32 || memories["b"] > 3 {
				t.Errorf("got %v readings of memory in 2.75 s, want about 28 of a and 3 of b", memories)
			}
		})
		time.Sleep(time.Second)
		d.set(func() { memories["a"] = 0 })
		time.Sleep(3 * time.Second)
		d.set(func() {
			if memories["a"] > 4 {
				t.Errorf("got %d readings in 3 s after the end, want one a second", memories["a"])
			}
		})
		if used, at := p.Memory("b"); used != 1 || at == 0 {
			t.Errorf("got %d bytes of b at %v, want what is read once a second", used, at)
		}
		if used, at := p.Memory("unknown"); used != 0 || at != 0 {
			t.Errorf("got %d bytes at %v of a GPU that does not exist", used, at)
		}
		p.stop()
		checkRows(t, p.take())
	})
}

// A GPU that hangs while its memory is watched is reported as hung, and the others go on.
func TestWatchMemoryOfAGPUThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		a, b := d.gpu("a", 0.3), d.gpu("b", 0.3)
		p := startRun(t.Context(), d)
		time.Sleep(5*time.Second + 50*time.Millisecond)
		hang := make(chan struct{})
		p.WatchMemory([]string{"a", "b"}, sample.Now().Mono+20*time.Second)
		time.Sleep(200 * time.Millisecond)
		d.set(func() { a.wait = hang })
		time.Sleep(3 * time.Second)
		d.set(func() { b.used = 5 })
		time.Sleep(2 * time.Second)
		if row := p.last(); row.GPUs[0].Status != sample.GPUHung || row.GPUs[1].Status != sample.GPUWorks {
			t.Errorf("got %v and %v, want hung and works", row.GPUs[0].Status, row.GPUs[1].Status)
		}
		if used, _ := p.Memory("b"); used != 6 {
			t.Errorf("got %d bytes of the GPU that works, want 6", used)
		}
		d.set(func() { a.wait = nil })
		close(hang)
		time.Sleep(3 * time.Second)
		if row := p.last(); row.GPUs[0].Status != sample.GPUWorks {
			t.Errorf("got %v after the call returned, want works", row.GPUs[0].Status)
		}
		p.stop()
	})
}

// Only listed GPUs are watched, so that watching is bounded. One that is listed again is not watched any more.
func TestWatchedIsBounded(t *testing.T) {
	s := newSource(0, nil, &fakeDriver{})
	listed := []*run{{devices: []*deviceState{{info: sample.GPU{ID: "a"}}}}}
	s.memory.keep(listed)
	now := sample.Now().Mono
	for i := range 3 * maxDevices {
		s.WatchMemory([]string{fmt.Sprint(i), "a"}, now+time.Minute)
	}
	if len(s.memory.gpus) != 1 || s.memory.gpus["a"].watchedUntil != now+time.Minute {
		t.Errorf("got %v, want the listed GPU watched", s.memory.gpus)
	}
	s.memory.keep(nil)
	s.memory.keep(listed)
	if s.memory.gpus["a"].watchedUntil != 0 {
		t.Errorf("got %v, want the GPU that was gone not watched", s.memory.gpus)
	}
}
