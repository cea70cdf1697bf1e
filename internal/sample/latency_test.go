package sample

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// TestLatencyBounds compares each bound with 2^(index/4) seconds, to 200 bits: no time is on the wrong side of one.
func TestLatencyBounds(t *testing.T) {
	for i := range LatencyBuckets + 1 {
		// 10^9 * 2^((first+i)/4), by two square roots.
		power := new(big.Float).SetPrec(200).SetMantExp(big.NewFloat(1), LatencyFirst+i)
		exact := new(big.Float).SetPrec(200).Sqrt(power.Sqrt(power))
		exact.Mul(exact, big.NewFloat(1e9))
		got := new(big.Float).SetPrec(200).SetInt64(int64(LatencyBound(i)))
		next := new(big.Float).SetPrec(200).SetInt64(int64(LatencyBound(i)) + 1)
		if got.Cmp(exact) > 0 || next.Cmp(exact) <= 0 {
			t.Errorf("bound %d is %d ns, want the whole part of %s", i, LatencyBound(i), exact.Text('f', 10))
		}
	}
}

// sdkBucket returns the index in which OpenTelemetry's SDK counts a time, at our scale.
func sdkBucket(t *testing.T, seconds float64) int {
	t.Helper()
	reader := metric.NewManualReader()
	ours := metric.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: LatencyScale}
	provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithView(metric.NewView(
		metric.Instrument{Name: "*"}, metric.Stream{Aggregation: ours})))
	h, err := provider.Meter("").Float64Histogram("h")
	if err != nil {
		t.Fatal(err)
	}
	h.Record(context.Background(), seconds)
	var all metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &all); err != nil {
		t.Fatal(err)
	}
	data := all.ScopeMetrics[0].Metrics[0].Data.(metricdata.ExponentialHistogram[float64])
	p := data.DataPoints[0]
	if p.Scale != LatencyScale || len(p.PositiveBucket.Counts) != 1 {
		t.Fatalf("got scale %d and %d buckets, want %d and 1", p.Scale, len(p.PositiveBucket.Counts), LatencyScale)
	}
	return int(p.PositiveBucket.Offset)
}

// TestLatencyBucketIsOpenTelemetrys: our bucket of a time is the one that the SDK counts it in.
func TestLatencyBucketIsOpenTelemetrys(t *testing.T) {
	random := rand.New(rand.NewPCG(57, 1))
	var times []time.Duration
	for i := range LatencyBuckets {
		b := LatencyBound(i)
		times = append(times, b-b/1000, b+1+b/1000)
		if b > 1_000_000 { // the SDK computes with logarithms of float64: nearer to a bound it may be wrong
			times = append(times, b-1, b+2)
		}
	}
	for range 500 {
		times = append(times, time.Duration(math.Exp(random.Float64()*math.Log(1e12))))
	}
	for _, d := range times {
		got := LatencyBucket(d)
		if got < 0 {
			if d > LatencyBound(0) {
				t.Errorf("%v counts as zero, want it above %v", d, LatencyBound(0))
			}
			continue
		}
		if want := sdkBucket(t, d.Seconds()) - LatencyFirst; got != min(want, LatencyBuckets-1) {
			t.Errorf("%d ns is in bucket %d, and in bucket %d of the SDK", d, got, want)
		}
	}
}

func histogramOf(times []time.Duration) *LatencyHistogram {
	var all [LatencyBuckets]uint64
	var zero uint64
	var sum time.Duration
	for _, d := range times {
		sum += d
		if b := LatencyBucket(d); b < 0 {
			zero++
		} else {
			all[b]++
		}
	}
	return NewLatencyHistogram(sum, zero, &all)
}

// TestLatencyQuantiles: a quantile is within one bucket of that of the times themselves.
func TestLatencyQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(57, 2))
	for range 200 {
		times := make([]time.Duration, 1+random.IntN(2000))
		spread := 1 + 9*random.Float64()
		for i := range times {
			times[i] = time.Duration(100e3 * math.Exp(spread*random.NormFloat64()/2))
		}
		h := histogramOf(times)
		slices.Sort(times)
		if h.Count() != uint64(len(times)) {
			t.Fatalf("%d of %d times are counted", h.Count(), len(times))
		}
		for _, q := range []float64{0, 0.5, 0.9, 0.99, 1} {
			at := max(0, int(math.Ceil(q*float64(len(times))))-1)
			got, want := h.Quantile(q), times[at]
			if b := LatencyBucket(want); b < LatencyBuckets-1 && (LatencyBucket(got) < b-1 || LatencyBucket(got) > b+1) {
				t.Errorf("quantile %v of %d times: %v, want about %v", q, len(times), got, want)
			}
		}
		if last := times[len(times)-1]; h.Max() < last && LatencyBucket(last) < LatencyBuckets-1 {
			t.Errorf("the maximum is %v, want at least %v", h.Max(), last)
		}
	}
}

func TestLatencyOfNothing(t *testing.T) {
	var none *LatencyHistogram
	empty := &LatencyHistogram{}
	if none.Count() != 0 || none.Quantile(0.5) != 0 || none.Max() != 0 || empty.Quantile(0.99) != 0 || empty.Max() != 0 {
		t.Error("a histogram without operations has a quantile")
	}
	fast := histogramOf([]time.Duration{1, 500})
	if fast.Quantile(0.5) != LatencyBound(0) || fast.Max() != LatencyBound(0) {
		t.Errorf("operations of less than a microsecond took %v, want %v", fast.Quantile(0.5), LatencyBound(0))
	}
}

// FuzzLatencySince: what two histograms have more than the first is the second.
func FuzzLatencySince(f *testing.F) {
	f.Add(uint64(1), uint16(10), uint16(10))
	f.Add(uint64(2), uint16(0), uint16(1))
	f.Add(uint64(3), uint16(1000), uint16(0))
	f.Fuzz(func(t *testing.T, seed uint64, first, second uint16) {
		random := rand.New(rand.NewPCG(seed, 57))
		draw := func(n uint16) (times []time.Duration) {
			for range n % 2048 {
				times = append(times, time.Duration(random.Int64N(int64(1)<<(1+random.IntN(45)))))
			}
			return times
		}
		a, b := draw(first), draw(second)
		before, want := histogramOf(a), histogramOf(b)
		both := histogramOf(append(slices.Clone(a), b...))
		got := both.Since(before)
		if got == nil || got.Sum != want.Sum || got.Zero != want.Zero || got.First != want.First ||
			!slices.Equal(got.Counts, want.Counts) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if !both.Valid() || !before.Valid() || !got.Valid() {
			t.Errorf("not valid: %+v, %+v, %+v", both, before, got)
		}
		if len(b) > 0 && before.Since(both) != nil {
			t.Error("a histogram that lost operations has a difference")
		}
	})
}

// FuzzLatencyBucket: a time is above the bound of its bucket and not above the next.
func FuzzLatencyBucket(f *testing.F) {
	for _, ns := range []int64{0, 1, 953, 954, 1_000_000, 1 << 40, math.MaxInt64} {
		f.Add(ns)
	}
	f.Fuzz(func(t *testing.T, ns int64) {
		d, b := time.Duration(ns), LatencyBucket(time.Duration(ns))
		if b < 0 && d > LatencyBound(0) || b >= 0 && d <= LatencyBound(b) ||
			b < LatencyBuckets-1 && d > LatencyBound(b+1) || b >= LatencyBuckets {
			t.Errorf("%d ns is in bucket %d", ns, b)
		}
	})
}
