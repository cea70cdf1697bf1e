package emulate

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var _ sample.Source = (*Accelerator)(nil)

// reading returns one reading of an accelerator.
func reading(t testing.TB, a *Accelerator) (at, busy time.Duration) {
	t.Helper()
	var s sample.Sample
	if err := a.Read(&s); err != nil {
		t.Fatal(err)
	}
	if len(s.GPUs) != 1 {
		t.Fatalf("%d devices in a reading, want 1", len(s.GPUs))
	}
	return s.At.Mono, s.GPUs[0].Busy
}

func TestAcceleratorIsExactInTheMiddleOfACompute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAccelerator("emulated-0")
		go a.Compute(10 * time.Second)
		begin := time.Now()
		for _, at := range []time.Duration{0, 3 * time.Second, 7 * time.Second, 10 * time.Second, 15 * time.Second} {
			time.Sleep(at - time.Since(begin))
			synctest.Wait()
			if _, busy := reading(t, a); busy != min(at, 10*time.Second) {
				t.Errorf("busy for %v after %v", busy, at)
			}
		}
	})
}

func TestAcceleratorCountsOverlappingComputesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAccelerator("emulated-0")
		go a.Compute(4 * time.Second)
		go a.Compute(1 * time.Second)
		time.Sleep(2 * time.Second)
		go a.Compute(5 * time.Second) // from 2 s to 7 s: 7 s in all
		time.Sleep(10 * time.Second)
		go a.Compute(time.Second)
		time.Sleep(2 * time.Second)
		if _, busy := reading(t, a); busy != 8*time.Second {
			t.Errorf("busy for %v, want 8s", busy)
		}
	})
}

func TestAcceleratorCountsWhatReallyElapsed(t *testing.T) {
	a := NewAccelerator("a")
	start, none := reading(t, a)
	if none != 0 {
		t.Errorf("busy for %v before the first Compute", none)
	}
	var sum time.Duration
	for range 20 {
		took := a.Compute(time.Millisecond)
		if took < time.Millisecond {
			t.Errorf("Compute(1ms) took %v", took)
		}
		sum += took
	}
	sum += a.Compute(0) + a.Compute(-time.Second)
	end, busy := reading(t, a)
	if busy != sum {
		t.Errorf("busy for %v, the calls took %v", busy, sum)
	}
	if busy > end-start {
		t.Errorf("busy for %v in %v", busy, end-start)
	}
}

func TestAcceleratorCanBeReadWhileItComputes(t *testing.T) {
	a := NewAccelerator("emulated-0")
	var done sync.WaitGroup
	for range 3 {
		done.Go(func() {
			for range 50 {
				a.Compute(100 * time.Microsecond)
			}
		})
		done.Go(func() {
			at, busy := reading(t, a)
			for range 500 {
				nextAt, next := reading(t, a)
				if next < busy || next-busy > nextAt-at {
					t.Errorf("busy went from %v to %v within %v", busy, next, nextAt-at)
				}
				at, busy = nextAt, next
			}
		})
	}
	done.Wait()
}

func BenchmarkAcceleratorRead(b *testing.B) {
	a := NewAccelerator("emulated-0")
	var s sample.Sample
	b.ReportAllocs()
	for b.Loop() {
		s.Reset()
		_ = a.Read(&s)
	}
}
