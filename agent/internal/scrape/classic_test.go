package scrape

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
)

// TestClassicBuckets: each time is in the fixed bucket that it belongs to.
func TestClassicBuckets(t *testing.T) {
	random := rand.New(rand.NewPCG(57, 3))
	for range 300 {
		d := time.Duration(math.Exp(random.Float64() * math.Log(1e13)))
		var all [sample.LatencyBuckets]uint64
		var zero uint64
		if b := sample.LatencyBucket(d); b < 0 {
			zero = 1
		} else {
			all[b] = 1
		}
		h := sample.NewLatencyHistogram(d, zero, &all)
		got := fixed(&metricdata.ExponentialHistogramDataPoint[float64]{Count: 1, Scale: sample.LatencyScale, ZeroCount: zero,
			PositiveBucket: metricdata.ExponentialBucket{Offset: int32(sample.LatencyFirst + h.First), Counts: h.Counts}})
		want := 0
		for want < len(got.Bounds) && d.Seconds() > got.Bounds[want] {
			want++
		}
		for i, n := range got.BucketCounts {
			if (n == 1) != (i == want) || n > 1 {
				t.Fatalf("%v: got %v, want it in bucket %d of %v", d, got.BucketCounts, want, got.Bounds)
			}
		}
	}
}

// TestLatenciesInText: both text formats have the buckets of how long disks take.
func TestLatenciesInText(t *testing.T) {
	now := sample.Now()
	h := &sample.LatencyHistogram{Sum: 3 * time.Second, First: -sample.LatencyFirst, Counts: []uint64{2}} // above 1 s
	o := Options{Resource: resource.Empty(), Own: func() emit.Own { return emit.Own{Since: now.Wall} },
		Collect: func() sample.Snapshot {
			return sample.Snapshot{Latencies: sample.Sample{At: sample.Now(), Latencies: []sample.Latency{
				{Disk: "vda", Operation: sample.ReadOperation, Began: now, LatencyHistogram: h},
			}}}
		}}
	handler, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, accept := range []string{"text/plain", "application/openmetrics-text; version=1.0.0"} {
		request, answer := httptest.NewRequest("GET", "/metrics", nil), httptest.NewRecorder()
		request.Header.Set("Accept", accept)
		handler.ServeHTTP(answer, request)
		for _, want := range []string{`le="1.0"} 0`, `le="2.0"} 2`, `le="+Inf"} 2`} {
			if strings.HasPrefix(accept, "text/plain") {
				want = strings.Replace(want, ".0", "", 1)
			}
			line := fmt.Sprintf(`stallspan_disk_operation_duration_seconds_bucket{disk_io_direction="read",`+
				`system_device_name="vda",%s`, want)
			if !strings.Contains(answer.Body.String(), line) {
				t.Errorf("%s lacks %s:\n%s", accept, line, answer.Body)
			}
		}
	}
}
