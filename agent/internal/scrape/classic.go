package scrape

import (
	"math"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// Ends of the buckets: powers of two from 15 us to 32 s. What is outside is in the first or in the last one.
const firstPower, lastPower = -16, 5

// classic turns exponential histograms into those with fixed buckets. The text formats have no exponential ones: a
// server that does not ask for protobuf would get a sum and a count. The ends are ends of our buckets, too, so nothing
// is estimated.
func classic(all []metricdata.Metrics) []metricdata.Metrics {
	for i := range all {
		from, ok := all[i].Data.(metricdata.ExponentialHistogram[float64])
		if !ok {
			continue
		}
		to := metricdata.Histogram[float64]{Temporality: from.Temporality}
		for j := range from.DataPoints {
			to.DataPoints = append(to.DataPoints, fixed(&from.DataPoints[j]))
		}
		all[i].Data = to
	}
	return all
}

// fixed sorts the buckets of one point, whose scale is not negative, into the fixed ones.
func fixed(p *metricdata.ExponentialHistogramDataPoint[float64]) metricdata.HistogramDataPoint[float64] {
	out := metricdata.HistogramDataPoint[float64]{
		Attributes: p.Attributes, StartTime: p.StartTime, Time: p.Time, Count: p.Count, Sum: p.Sum,
	}
	for power := firstPower; power <= lastPower; power++ {
		out.Bounds = append(out.Bounds, math.Ldexp(1, power))
	}
	out.BucketCounts = make([]uint64, len(out.Bounds)+1)
	out.BucketCounts[0] = p.ZeroCount
	for i, n := range p.PositiveBucket.Counts {
		// Bucket k at scale 0 is above 2^k and at most 2^(k+1).
		k := (int(p.PositiveBucket.Offset) + i) >> p.Scale
		out.BucketCounts[min(max(k+1-firstPower, 0), len(out.Bounds))] += n
	}
	return out
}
