package gpu

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestPCIeCountersWrap(t *testing.T) {
	for _, c := range []struct {
		name string
		rate float64 // bytes a second
		bits int
		gpm  bool
	}{{"slow", 9e8, 32, false}, {"fast", 27e9, 32, true}, {"wide", 27e9, 64, false}, {"32 bits in 64", 3e9, 33, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &fakeDriver{}
				g := d.gpu("a", 0.5)
				g.details = allDetails()
				counted := func() float64 { return 4e9 + math.Floor(c.rate*time.Since(g.began).Seconds()) }
				g.details.fields[198] = func() answer {
					if c.bits == 64 {
						return answer{number: counted()}
					}
					return answer{number: math.Mod(counted(), 1<<32), narrow: c.bits == 32}
				}
				g.details.gpm = nil
				if c.gpm { // GPM's rate includes protocol overhead
					rate := func(time.Duration) float64 { return 1.04 * c.rate / mebibytes.factor }
					g.details.gpm = map[uint32]func(time.Duration) float64{21: rate}
				}
				p := startRun(t.Context(), d)
				time.Sleep(30 * time.Second)
				p.stop()
				list := details(p.take(), "a")
				skip := 2 // GPM has no rate before the second reading
				for i := skip + 1; i < len(list); i++ {
					grew := value(t, list[i], sample.GPUPCIeReceived) - value(t, list[i-1], sample.GPUPCIeReceived)
					if want := c.rate * (list[i].At - list[i-1].At).Seconds(); math.Abs(grew-want) > 2 {
						t.Fatalf("got growth %v, want %v", grew, want)
					}
				}
				if _, ok := list[5].Values.Get(sample.GPUPCIeReceiveRate); ok {
					t.Error("got a rate and a counter, want the counter only")
				}
			})
		})
	}
}

func TestPCIeRatesWithoutCounters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		g := d.gpu("a", 0.5)
		g.details = allDetails()
		for _, id := range []uint32{197, 198, 138, 139, 202, 204} {
			delete(g.details.fields, id)
		}
		p := startRun(t.Context(), d)
		time.Sleep(10 * time.Second)
		p.stop()
		list := details(p.take(), "a")
		last, before := list[len(list)-1], list[len(list)-2]
		if got := value(t, last, sample.GPUPCIeReceiveRate); got != 25*mebibytes.factor {
			t.Errorf("got %v bytes a second, want %v", got, 25*mebibytes.factor)
		}
		grew := value(t, last, sample.GPUNVLinkSent) - value(t, before, sample.GPUNVLinkSent)
		if want := 25 * mebibytes.factor * (last.At - before.At).Seconds(); math.Abs(grew-want) > 1 {
			t.Errorf("got %v bytes sent over NVLink, want %v", grew, want)
		}
		if _, ok := last.Values.Get(sample.GPUPCIeReceived); ok {
			t.Error("got a counter, want a rate only")
		}
	})
}

// GPM metrics are means since the reading before, and missing after a gap.
func TestGPMAfterGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		g := d.gpu("a", 0.5)
		g.details = allDetails()
		g.details.gpm[2] = func(since time.Duration) float64 { return since.Seconds() } // as percent
		p := startRun(t.Context(), d)
		time.Sleep(5 * time.Second)
		wait := make(chan struct{})
		d.set(func() { g.wait = wait })
		time.Sleep(30*time.Second + 300*time.Millisecond) // not at a row's end: one with the first details comes soon
		d.set(func() { g.wait = nil })
		close(wait)
		time.Sleep(5 * time.Second)
		p.stop()
		list := details(p.take(), "a")
		var without int
		for i, d := range list {
			v, ok := d.Values.Get(sample.GPUSMActive)
			if !ok {
				without++
				continue
			}
			if i == 0 {
				continue
			}
			if since := (d.At - list[i-1].At).Seconds(); math.Abs(v*100-since) > 0.2 || since > 2 {
				t.Errorf("got a mean over %v s, want it over the %v s since the reading before", v*100, since)
			}
		}
		if without < 1 || without > 2 {
			t.Errorf("got %d of %d details without GPM, want 1 or 2", without, len(list))
		}
	})
}

func TestThrottleTimeWithoutCounters(t *testing.T) {
	for _, c := range []struct {
		name       string
		violations bool
	}{{"violations", true}, {"reasons", false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &fakeDriver{}
				g := d.gpu("a", 0.5)
				g.details = allDetails()
				for _, id := range []uint32{74, 75, 76, 77, 79, 269, 270, 271} {
					delete(g.details.fields, id)
				}
				for q := range reasonBits {
					if !c.violations {
						delete(g.details.values, q)
					}
				}
				if c.violations {
					g.details.values[sample.GPUThrottledPower] = func() float64 { return time.Since(g.began).Seconds() }
				}
				g.details.reasons = func() uint64 { return 0x4 | 0x40 | 0x1 } // power cap, hardware thermal, idle
				p := startRun(t.Context(), d)
				time.Sleep(20 * time.Second)
				p.stop()
				list := details(p.take(), "a")
				first, last := list[0], list[len(list)-1]
				for q, share := range map[sample.GPUQuantity]float64{sample.GPUThrottledPower: 1, sample.GPUThrottledHWThermal: 1,
					sample.GPUThrottledPowerBrake: 0, sample.GPUThrottledBoard: 0} {
					grew := value(t, last, q) - value(t, first, q)
					if want := share * (last.At - first.At).Seconds(); math.Abs(grew-want) > 0.01 {
						t.Errorf("%v: got growth %v, want %v", q, grew, want)
					}
				}
			})
		})
	}
}

// nth returns a reading n seconds after the first.
func nth(n int) *reading {
	return &reading{clocks: clocks{at: sample.Stamp{Mono: time.Duration(n+1) * time.Second}}}
}

// One garbage value of a PCIe counter neither counts as a wrap nor makes a 32-bit counter a wide one.
func TestGarbageIsNotUnwrapped(t *testing.T) {
	for _, garbage := range []float64{1 << 63, 1e15} {
		a := newDeviceReader(&fakeGPU{uuid: "a"})
		received := slices.IndexFunc(rows, func(p row) bool { return p.quantity == sample.GPUPCIeReceived })
		took := 0
		take := func(f answer) float64 {
			took++
			f.row = received
			a.take(&f, true, nth(took))
			value, _ := a.values.Get(sample.GPUPCIeReceived)
			return value
		}
		take(answer{number: 3e9, narrow: true})
		for range maxRejected {
			take(answer{number: garbage})
		}
		if got := take(answer{number: 4e9, narrow: true}); got != 4e9 {
			t.Errorf("after %v: got %v, want 4e9", garbage, got)
		}
		if got := take(answer{number: 1e9, narrow: true}); got != 1e9+wrap32 {
			t.Errorf("after %v and a wrap: got %v, want %v", garbage, got, 1e9+wrap32)
		}
	}
}

// A counter with a 64-bit type may wrap at 32 bits, several times between two readings.
func TestWideTypeMayWrapAt32Bits(t *testing.T) {
	for _, width := range []float64{wrap32, 1 << 60} {
		d := &fakeDriver{}
		g := d.gpu("a", 0.5)
		g.details = allDetails()
		const rate = 25e9
		truth := rate / 3
		g.details.fields[198] = func() answer { return answer{number: math.Mod(truth, width)} }
		g.details.gpm[21] = func(time.Duration) float64 { return 1.01 * rate / mebibytes.factor }
		a := newDeviceReader(g)
		var before float64
		for n := range 60 {
			r := nth(n)
			a.readAll(request{}, r)
			now, _ := a.values.Get(sample.GPUPCIeReceived)
			if grew := now - before; n > 20 && math.Abs(grew-rate) > 1 { // it has decreased once by then
				t.Fatalf("width %v: got growth %v in second %d, want %v", width, grew, n, rate)
			}
			before, truth = now, truth+rate
		}
	}
}
