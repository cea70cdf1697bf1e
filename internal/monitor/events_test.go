package monitor

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/alert"
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

// What happens is told to those who listen, also what began before they did; to nobody else, and not after they left.
func TestOnEvent(t *testing.T) {
	gpu := &frail{}
	m, err := New(Config{Accelerator: gpu})
	if err != nil {
		t.Fatal(err)
	}
	gpu.lost.Store(true)
	m.Start()
	defer m.Stop()
	told := make(chan alert.Event, 10)
	forget := m.OnEvent(func(e alert.Event) { told <- e })
	select {
	case e := <-told:
		if e.Kind != alert.GPULost || e.GPU.ID != "GPU-1" || e.Resolved {
			t.Errorf("%+v", e)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was told")
	}
	forget()
	m.mu.Lock()
	_, listeners := m.happened()
	m.mu.Unlock()
	if len(listeners) != 0 {
		t.Error("somebody listens")
	}
}

// A source counts as failing when it failed since the look before, and not for what was before the first one.
func TestFailingSources(t *testing.T) {
	var w watch
	counts := map[string]Failure{"gpu": {Count: 3, Last: context.DeadlineExceeded}}
	if parts := w.failing(counts); parts != nil {
		t.Errorf("%v", parts)
	}
	if parts := w.failing(counts); parts != nil {
		t.Errorf("%v", parts)
	}
	counts["gpu"] = Failure{Count: 4, Last: context.DeadlineExceeded}
	if parts := w.failing(counts); len(parts) != 1 || parts[0] != (alert.Part{Name: "source gpu", Error: "context deadline exceeded"}) {
		t.Errorf("%v", parts)
	}
}
