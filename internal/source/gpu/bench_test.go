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

// BenchmarkRound measures one round of all GPUs with the fake library, with gauges and details, without processes, and
// with GPM every 100 ms only. A real driver's time comes on top.
func BenchmarkRound(b *testing.B) {
	for _, gpus := range []int{1, 8} {
		b.Run(fmt.Sprintf("gpus=%d", gpus), func(b *testing.B) {
			var text strings.Builder
			for i := range gpus {
				fmt.Fprintf(&text, "gpu %d\n", i)
			}
			playText(b, text.String())
			d := newDriver(fakeLibrary(b))
			w := newGrid(1e8, func(string, *sample.Sample, error) {}, newMemoryInUse())
			r := newRun(d, w, nil)
			w.poll(b.Context(), true)
			if len(r.devices) != gpus {
				b.Fatalf("got %d GPUs, want %d", len(r.devices), gpus)
			}
			b.ReportAllocs()
			var took []time.Duration
			for b.Loop() {
				for _, c := range r.devices {
					c.gaugeAt -= time.Second
				}
				began := time.Now()
				w.poll(b.Context(), true)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "median-ns")
			b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
			r.end(callTimeout)
		})
	}
}
