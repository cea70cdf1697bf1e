package gpu

import (
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

const hwThermalField = "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN"

// throttledGPU returns a GPU that the hardware's thermal protection holds down for as long as held returns, as a
// counter (field 270). The driver gives the reason if shows is true then.
func throttledGPU(d *fakeDriver, held func(time.Duration) time.Duration, shows func(time.Duration) bool) *fakeGPU {
	g := d.gpu("a", 0.5)
	g.details = allDetails()
	g.details.fields[270] = func() answer { return answer{number: float64(held(time.Since(g.began)))} }
	g.details.reasons = func() uint64 {
		if shows(time.Since(g.began)) {
			return 0x40 | 0x8
		}
		return 0x1
	}
	return g
}

// throttledShare is the mean of windows for the hardware's thermal protection.
func throttledShare(t *testing.T, h *history.History, start, end time.Duration) float64 {
	t.Helper()
	means := h.Means("a", start, end)
	share, known := means.Get(history.ThrottledHWThermal)
	if !known {
		t.Errorf("from %v to %v: got no share, want one", start, end)
	}
	return share
}

// A counter of throttle time that takes the driver long is read each second while the driver gives its reason, and once
// after that. Windows show the throttle time in the seconds in which it was.
func TestThrottledWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const begin, end = 23400 * time.Millisecond, 34700 * time.Millisecond
		d := &fakeDriver{}
		held := func(at time.Duration) time.Duration { return min(max(at-begin, 0), end-begin) }
		throttledGPU(d, held, func(at time.Duration) bool { return at >= begin && at < end })
		began := sample.Now().Mono
		p := startRun(t.Context(), d)
		time.Sleep(22 * time.Second)
		before := d.counted()[hwThermalField]
		time.Sleep(15 * time.Second)
		during := d.counted()[hwThermalField]
		time.Sleep(63 * time.Second)
		p.stop()
		after := d.counted()[hwThermalField]
		if before < 2 || before > 4 || during < 12 || during > 15 || after < 6 || after > 7 {
			t.Errorf("got %d readings in 22 s, %d in 15 s and %d in 63 s; want one in 10 s, one a second and one in 10 s",
				before, during, after)
		}
		rows := p.take()
		for _, r := range details(rows, "a") {
			at := r.At - began
			if got, want := value(t, r, sample.GPUThrottledHWThermal), held(at).Seconds(); math.Abs(got-want) > 0.001 {
				t.Errorf("after %v: got %v s, want %v", at, got, want)
			}
		}
		h := pastOf(t, rows, began)
		for _, w := range [][2]time.Duration{{10 * time.Second, 22 * time.Second}, {22 * time.Second, 25 * time.Second},
			{25 * time.Second, 34 * time.Second}, {30 * time.Second, 40 * time.Second}, {36 * time.Second, 90 * time.Second},
			{10 * time.Second, 90 * time.Second}} {
			got := throttledShare(t, h, w[0], w[1]) * (w[1] - w[0]).Seconds()
			if want := (held(w[1]) - held(w[0])).Seconds(); math.Abs(got-want) > 0.5 { // within a second of each edge
				t.Errorf("window %v: got %v s, want %v", w, got, want)
			}
		}
	})
}

// Time that no reading of the reasons has shown is not lost: it comes up to ten seconds late, and no faster than time.
func TestThrottledBetweenReadings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDriver{}
		held := func(at time.Duration) time.Duration { // 300 ms in each second up to 60 s
			at = min(at, time.Minute)
			return at.Truncate(time.Second)*3/10 + min(at%time.Second, 300*time.Millisecond)
		}
		throttledGPU(d, held, func(time.Duration) bool { return false })
		began := sample.Now().Mono
		p := startRun(t.Context(), d)
		time.Sleep(100 * time.Second)
		p.stop()
		if n := d.counted()[hwThermalField]; n < 10 || n > 12 {
			t.Errorf("got %d readings in 100 s, want one in 10 s", n)
		}
		rows := p.take()
		list := details(rows, "a")
		for i, r := range list[1:] {
			grew := value(t, r, sample.GPUThrottledHWThermal) - value(t, list[i], sample.GPUThrottledHWThermal)
			if passed := (r.At - list[i].At).Seconds(); grew < 0 || grew > passed+1e-9 {
				t.Fatalf("got growth by %v s in %v s, want no more than that", grew, passed)
			}
		}
		if got := value(t, list[len(list)-1], sample.GPUThrottledHWThermal); math.Abs(got-18) > 0.001 {
			t.Errorf("got %v s in all, want 18", got)
		}
		share := throttledShare(t, pastOf(t, rows, began), 2*time.Second, 90*time.Second)
		if got := share * 88; got < 17.4 || got > 18.001 { // 0.6 s from before the window come late
			t.Errorf("got %v s in the window, want 17.4 to 18", got)
		}
	})
}

// A GPU that was hung is read whole once: its reasons were not read meanwhile.
func TestThrottledWhileHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const begin, end = 22 * time.Second, 25 * time.Second
		d := &fakeDriver{}
		held := func(at time.Duration) time.Duration { return min(max(at-begin, 0), end-begin) }
		g := throttledGPU(d, held, func(at time.Duration) bool { return at >= begin && at < end })
		p := startRun(t.Context(), d)
		time.Sleep(21 * time.Second)
		wait := make(chan struct{})
		d.set(func() { g.wait = wait })
		time.Sleep(6 * time.Second)
		returned := sample.Now().Mono
		d.set(func() { g.wait = nil })
		close(wait)
		time.Sleep(4 * time.Second)
		p.stop()
		list := details(p.take(), "a")
		i := slices.IndexFunc(list, func(r sample.GPUDetail) bool { return r.At >= returned && !r.Values.Empty() })
		if i < 0 {
			t.Fatal("got no details after the hang, want some")
		}
		if got := value(t, list[i], sample.GPUThrottledHWThermal); got != 3 {
			t.Errorf("got %v s, want 3", got)
		}
	})
}

// Without the reasons, the counters are read each second.
func TestThrottleCountersWithoutReasons(t *testing.T) {
	for name, answer := range map[string]func(*fakeDetails){
		"not supported": func(f *fakeDetails) { f.reasons = nil },
		"failing":       func(f *fakeDetails) { f.errs = map[string]error{callReasons: errors.New("broken")} },
		"garbage":       func(f *fakeDetails) { f.reasons = func() uint64 { return 808334905 << 20 } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &fakeDriver{}
				g := throttledGPU(d, func(at time.Duration) time.Duration { return at / 5 }, nil)
				answer(g.details)
				p := startRun(t.Context(), d)
				time.Sleep(30 * time.Second)
				p.stop()
				if n := d.counted()[hwThermalField]; n < 28 || n > 32 {
					t.Errorf("got %d readings in 30 s, want one a second", n)
				}
			})
		})
	}
}

// A field value that takes the driver long stands in for a cheaper one that fails. It is read each second where its own
// last reading failed.
func TestFailingFieldIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		d := &fakeDriver{}
		g := throttledGPU(d, func(time.Duration) time.Duration { return 0 }, func(time.Duration) bool { return false })
		g.details.fields[269] = func() answer { return answer{err: broken} }
		g.details.fields[75] = constant(7e9)
		bad := false
		g.details.fields[270] = func() answer {
			if bad {
				return answer{err: broken}
			}
			return answer{number: 3e9}
		}
		p := startRun(t.Context(), d)
		time.Sleep(20 * time.Second)
		for _, r := range details(p.take(), "a") {
			if got := value(t, r, sample.GPUThrottledThermal); got != 7 {
				t.Fatalf("got %v s, want 7 of the second field", got)
			}
		}
		if n := d.counted()["NVML_FI_DEV_PERF_POLICY_THERMAL"]; n < 2 || n > 4 {
			t.Errorf("got %d readings of the second field in 20 s, want one in 10 s", n)
		}
		d.set(func() { bad = true })
		time.Sleep(14 * time.Second) // the field has its turn at 20, 30 and 40 s
		list := details(p.take(), "a")
		if _, known := list[len(list)-1].Values.Get(sample.GPUThrottledHWThermal); known {
			t.Error("got a value of a field that fails, want none")
		}
		d.set(func() { bad = false })
		time.Sleep(2500 * time.Millisecond)
		p.stop()
		list = details(p.take(), "a")
		if got := value(t, list[len(list)-1], sample.GPUThrottledHWThermal); got != 3 {
			t.Errorf("got %v s, want 3", got)
		}
	})
}

// Field values that take the driver long have turns of their own, and a reason.
func TestRareFields(t *testing.T) {
	taken := map[int]string{}
	for i, p := range rows {
		if p.call != callFields || p.period != slow {
			continue
		}
		turn := turns[i]
		if p.quantity != energyCounter && (p.traits&byReason == 0 || reasonBits[p.quantity] == 0) {
			t.Errorf("%s: got no reason, want one", p.name)
		}
		if other, ok := taken[turn]; ok {
			t.Errorf("%s: got the turn of %s, want one of its own", p.name, other)
		}
		taken[turn] = p.name
	}
	if len(taken) != 4 {
		t.Errorf("got %v, want four fields", taken)
	}
}
