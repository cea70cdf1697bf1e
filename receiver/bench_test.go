//go:build linux && (amd64 || arm64)

package receiver

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/window"
)

func started(b *testing.B) *stallspanReceiver {
	c := laboratory(b)
	w := newReceiver(settings(), c)
	p := &pipelines{}
	if err := w.addTraces(settings(), &p.TracesSink); err != nil {
		b.Fatal(err)
	}
	if err := w.Start(b.Context(), nil); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = w.Shutdown(context.Background()) })
	return w
}

// BenchmarkScrape is what one collection costs on a machine with two disks, two cores and no GPU.
func BenchmarkScrape(b *testing.B) {
	w := started(b)
	for b.Loop() {
		if _, err := w.scrape(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWindow is a window from its beginning to its span in the pipeline, without the socket.
func BenchmarkWindow(b *testing.B) {
	w := started(b)
	for b.Loop() {
		id, _, err := w.client.BeginAt(window.Window{Kind: window.Epoch}, w.monitor.Now(), trace.SpanContext{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := w.client.End(id, window.Outcome{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
