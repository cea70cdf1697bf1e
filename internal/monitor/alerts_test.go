package monitor

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/sample"
)

// frail is an accelerator that can be lost.
type frail struct{ lost atomic.Bool }

func (f *frail) Read(s *sample.Sample) error {
	s.At = sample.Now()
	g := sample.GPU{ID: "GPU-1"}
	if f.lost.Load() {
		g.Status = sample.GPULost
	}
	s.GPUs = append(s.GPUs, g)
	return nil
}

// Receivers get events, also what began before they subscribed, and nothing after they unsubscribe.
func TestOnEvent(t *testing.T) {
	gpu := &frail{}
	m, err := New(Config{Accelerator: gpu})
	if err != nil {
		t.Fatal(err)
	}
	gpu.lost.Store(true)
	m.Start()
	defer m.Stop()
	received := make(chan alert.Event, 10)
	unsubscribe := m.OnEvent(func(e alert.Event) { received <- e })
	select {
	case e := <-received:
		if e.Kind != alert.GPULost || e.GPU.ID != "GPU-1" || e.Resolved {
			t.Errorf("got %+v, want the loss of GPU-1", e)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("no event within 30 s")
	}
	unsubscribe()
	if m.alerts.Active() {
		t.Error("got a receiver after unsubscribing, want none")
	}
}

// A source is failing if it failed since the previous check. What was before the first check does not count.
func TestFailingSources(t *testing.T) {
	var a alerts
	counts := map[string]sampling.Failure{"gpu": {Count: 3, Last: context.DeadlineExceeded}}
	for range 2 {
		if parts := a.failing(counts); parts != nil {
			t.Errorf("got %v, want none", parts)
		}
	}
	counts["gpu"] = sampling.Failure{Count: 4, Last: context.DeadlineExceeded}
	want := alert.Part{Name: "source gpu", Error: "context deadline exceeded"}
	if parts := a.failing(counts); len(parts) != 1 || parts[0] != want {
		t.Errorf("got %v, want %v", parts, want)
	}
}
