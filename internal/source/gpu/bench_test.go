//go:build linux && cgo

package gpu

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// BenchmarkRound is one round of all GPUs against the stand-in, gauges and details included, without lists of processes,
// and with GPM each 100 ms only. What a real driver takes comes on top.
func BenchmarkRound(b *testing.B) {
	for _, gpus := range []int{1, 8} {
		b.Run(fmt.Sprintf("gpus=%d", gpus), func(b *testing.B) {
			var text strings.Builder
			for i := range gpus {
				fmt.Fprintf(&text, "gpu %d\n", i)
			}
			playText(b, text.String())
			d, err := newDriver(fakeLibrary(b))
			if err != nil {
				b.Fatal(err)
			}
			r := newRun(d, 0, func(string, *sample.Sample, error) {})
			r.interval, r.grid.interval = 1e8, 1e8
			r.poll(b.Context(), true)
			if len(r.devices) != gpus {
				b.Fatalf("%d GPUs", len(r.devices))
			}
			b.ReportAllocs()
			var took []time.Duration
			for b.Loop() {
				for _, c := range r.devices {
					c.gaugeAt -= time.Second
				}
				began := time.Now()
				r.poll(b.Context(), true)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
			r.end()
		})
	}
}
