package history

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// detailed returns a reading of one GPU with details.
func detailed(at time.Duration, values map[sample.GPUQuantity]float64) *sample.Sample {
	d := sample.GPUDetail{GPU: "gpu0", At: at}
	for q, v := range values {
		d.Values.Set(q, v)
	}
	return &sample.Sample{
		At:         sample.Stamp{Mono: at},
		GPUs:       []sample.GPU{{ID: "gpu0", MemoryUsed: 5 << 30, MemoryTotal: 80 << 30, Has: sample.HasMemory}},
		GPUDetails: []sample.GPUDetail{d},
	}
}

// FuzzMeans compares means and shares with the exact integrals of the readings.
func FuzzMeans(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, uint16(100), uint16(60000), uint16(2000))
	}
	f.Fuzz(func(t *testing.T, seed uint64, readings, x, y uint16) {
		rng := rand.New(rand.NewPCG(seed, 2))
		h := newHistory(t)
		var now time.Duration
		var when []time.Duration
		var ratio, slowed []float64
		var counter float64
		for range 3 + int(readings)%500 {
			step := time.Second + time.Duration(rng.Int64N(int64(time.Second)))
			now += step
			value, share := rng.Float64(), rng.Float64()
			counter += share * step.Seconds()
			when, ratio, slowed = append(when, now), append(ratio, value), append(slowed, share)
			add(t, h, detailed(now, map[sample.GPUQuantity]float64{
				sample.GPUTensorActive: value, sample.GPUThrottledPower: counter,
			}))
		}
		span := float64(when[len(when)-1] - when[0])
		start := when[0] + time.Duration(span*float64(min(x, y))/math.MaxUint16)
		end := when[0] + time.Duration(span*float64(max(x, y))/math.MaxUint16)
		if end-start < time.Millisecond {
			return
		}
		var sum, lost float64
		for i := 1; i < len(when); i++ {
			if over := min(end, when[i]) - max(start, when[i-1]); over > 0 {
				sum += ratio[i] * over.Seconds()
				lost += slowed[i] * over.Seconds()
			}
		}
		m := h.Means("gpu0", start, end)
		for d, want := range map[Detail]float64{
			TensorActive: sum, ThrottledPower: lost, MemoryUsed: 5 << 30 * (end - start).Seconds(),
		} {
			want /= (end - start).Seconds()
			// Before the last ten minutes, rows are ten seconds apart.
			slack := 1e-9*want + 1e-6
			if last := when[len(when)-1]; last-start > 9*time.Minute {
				slack += 2 * 12 / (end - start).Seconds()
			}
			if got, ok := m.Get(d); !ok || math.Abs(got-want) > slack {
				t.Errorf("%d in [%v, %v]: got %v, %v; want %v", d, start, end, got, ok, want)
			}
		}
		if _, ok := m.Get(SMActive); ok {
			t.Error("an unknown quantity: got a mean, want none")
		}
	})
}

// A quantity that is known for half of the time has a mean.
func TestMeansWithGaps(t *testing.T) {
	h := newHistory(t)
	tensor := map[sample.GPUQuantity]float64{sample.GPUTensorActive: 0.5, sample.GPUThrottledThermal: 7}
	for i := 1; i <= 100; i++ {
		values := tensor
		if i == 20 || i > 40 && i <= 60 { // once a missing value, once a gap of 20 s
			values = nil
		}
		add(t, h, detailed(time.Duration(i)*time.Second, values))
		xid := detailed(time.Duration(i)*time.Second+tick, nil) // reported at once, without other values
		xid.GPUDetails[0].XIDs = []sample.XID{{Code: 31, Count: 1}}
		add(t, h, xid)
	}
	for _, c := range []struct {
		start, end int
		ok         bool
	}{
		{1, 40, true}, // after the gap, the time before it is not known
		{10, 70, false},
		{60, 100, true},
		{40, 90, true},
		{98, 101, true},  // the late end is left out
		{99, 102, false}, // unless it is most of the window
		{200, 300, false},
	} {
		want := c.ok && c.start >= 40
		m := h.Means("gpu0", time.Duration(c.start)*time.Second, time.Duration(c.end)*time.Second)
		mean, ok := m.Get(TensorActive)
		share, _ := m.Get(ThrottledThermal)
		if ok != want || ok && math.Abs(mean-0.5) > 1e-9 || share != 0 {
			t.Errorf("%+v: got %v, %v, throttled %v; want 0.5, %v, throttled 0", c, mean, ok, share, want)
		}
	}
	if m := h.Means("gpu1", 0, time.Minute); !m.Empty() {
		t.Errorf("unknown GPU: got %+v, want no means", m)
	}
}

// Counters may restart, values may be implausible, and readings may be out of order.
func TestImplausibleDetails(t *testing.T) {
	h := newHistory(t)
	for i, c := range []struct {
		at       int
		slowed   float64
		clock    float64
		limit    float64
		shutdown float64
	}{
		{1, 100, 1e9, 700, 90}, {2, 100.5, 1.9e9, 700, 90}, {2, 500, 9e9, 1, 1}, {3, 0.25, 1.5e9, 600, 0}, {-5, 0, 0, 0, 0},
		{4, 1e17, math.Inf(1), 600, 0}, {5, -1, math.NaN(), math.Inf(1), math.NaN()},
	} {
		s := detailed(time.Duration(c.at)*time.Second, map[sample.GPUQuantity]float64{
			sample.GPUThrottledPower: c.slowed, sample.GPUClockSM: c.clock,
			sample.GPUPowerLimit: c.limit, sample.GPUSlowdownAt: c.shutdown,
		})
		s.At.Mono = time.Duration(i+1) * time.Second
		add(t, h, s)
	}
	m := h.Means("gpu0", time.Second, 5*time.Second)
	if share, ok := m.Get(ThrottledPower); !ok || math.Abs(share-(0.5+0.25+1)/4) > 1e-9 {
		t.Errorf("throttled: got %v, %v; want %v", share, ok, (0.5+0.25+1)/4)
	}
	if clock, ok := m.Get(SMClock); !ok || math.Abs(clock-(1.9e9+3*1.5e9)/4) > 1 {
		t.Errorf("clock: got %v, %v; want %v", clock, ok, (1.9e9+3*1.5e9)/4)
	}
	want := GPULimits{Memory: 80 << 30, Power: 600, SlowdownAt: 90, Clock: 1.9e9}
	if got := h.Limits("gpu0"); got != want {
		t.Errorf("limits: got %+v, want %+v", got, want)
	}
	if got := h.Limits("gpu1"); got != (GPULimits{}) {
		t.Errorf("limits of an unknown GPU: got %+v, want none", got)
	}
}

// Details take about a tenth of the memory of columns with every reading. GPUs that are gone make room, and the memory
// stays bounded.
func TestRoomForDetails(t *testing.T) {
	h := newHistory(t)
	empty := h.Bytes()
	machine := func(at time.Duration, from, to int) *sample.Sample {
		s := &sample.Sample{At: sample.Stamp{Mono: at}}
		for i := from; i < to; i++ {
			id := strconv.Itoa(i)
			s.GPUs = append(s.GPUs, sample.GPU{ID: id})
			s.GPUDetails = append(s.GPUDetails, sample.GPUDetail{GPU: id, At: at})
		}
		return s
	}
	add(t, h, machine(time.Second, 0, 8))
	busy := 8 * h.size(kindGPU, 3)
	t.Logf("one GPU on all tiers: %d bytes, on the finest: %d; eight: %d of %d",
		h.detailSize(3), h.detailSize(1), h.detailBytes, DefaultMaxBytes)
	if h.detailBytes != h.Bytes()-empty-busy || h.detailBytes > DefaultMaxBytes/6 || len(h.details) != 8 {
		t.Errorf("got %d bytes for details of %d GPUs, want %d for 8", h.detailBytes, len(h.details), h.Bytes()-empty-busy)
	}
	_ = h.Append(machine(2*time.Second, 0, 3000)) // too many
	if h.Bytes() > DefaultMaxBytes || len(h.details) < 8 {
		t.Errorf("got %d bytes for %d GPUs, want at most %d for 8 or more", h.Bytes(), len(h.details), DefaultMaxBytes)
	}
	_ = h.Append(machine(100*time.Hour, 3000, 3001))
	if h.details["3000"] == nil || len(h.details) != 1 || h.detailBytes > h.detailSize(3) {
		t.Errorf("got %d GPUs, %d bytes; want GPU 3000 alone", len(h.details), h.detailBytes)
	}
}

func TestDetailsAllocateNothing(t *testing.T) {
	h := newHistory(t)
	s := detailed(time.Second, map[sample.GPUQuantity]float64{sample.GPUTensorActive: 0.5})
	add(t, h, s)
	if n := testing.AllocsPerRun(100, func() {
		s.At.Mono += time.Second
		s.GPUDetails[0].At += time.Second
		_ = h.Append(s)
	}); n != 0 {
		t.Errorf("got %v allocations per reading, want 0", n)
	}
}

func BenchmarkMeans(b *testing.B) {
	h := newHistory(b)
	all := map[sample.GPUQuantity]float64{}
	for _, q := range quantities {
		all[q] = 0.5
	}
	for i := range 7200 {
		add(b, h, detailed(time.Duration(i)*time.Second, all))
	}
	b.ReportAllocs()
	for b.Loop() {
		if m := h.Means("gpu0", 100*time.Second, 7000*time.Second); m.Empty() {
			b.Fatal("got no means, want some")
		}
	}
}

func BenchmarkDetail(b *testing.B) {
	h := newHistory(b)
	s := detailed(time.Second, map[sample.GPUQuantity]float64{sample.GPUTensorActive: 0.5})
	b.ReportAllocs()
	for b.Loop() {
		s.At.Mono += time.Second
		s.GPUDetails[0].At += time.Second
		_ = h.Append(s)
	}
}
