package monitor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/events"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/gpu"
)

const (
	firstGPUs = 2 * time.Second       // for which Start waits for a driver to list its GPUs
	freshGPUs = 50 * time.Millisecond // for which the end of a window waits for the driver's newest samples
)

// gpus is the source with a time axis of its own: its readings come up to a second late.
type gpus struct {
	stream sample.Stream
	once   sync.Once
	first  chan struct{} // closed when the source has told anything
	watch  events.GPUs   // of the stream's goroutine alone
}

func newGPUs(config *Config) (*gpus, error) {
	source, err := gpu.New(gpu.Options{Library: config.NVML, Interval: config.Interval})
	if err != nil {
		return nil, err
	}
	return &gpus{stream: source, first: make(chan struct{})}, nil
}

// wait returns when the source has told of its GPUs, or that there are none.
func (g *gpus) wait() {
	select {
	case <-g.first:
	case <-time.After(firstGPUs):
	}
}

// takeGPUs is the GPUs' sink.
func (m *Monitor) takeGPUs(source string, s *sample.Sample, err error) {
	if !m.withoutGPU(err) {
		m.problems.note(source, err)
	}
	m.mu.Lock()
	m.append(source, s)
	listeners := m.onLost
	m.mu.Unlock()
	if len(listeners) > 0 { // else nobody would hear of what is lost already
		for _, lost := range m.gpus.watch.Look(s) {
			for _, tell := range listeners {
				(*tell)(lost)
			}
		}
	}
	m.gpus.once.Do(func() { close(m.gpus.first) })
}

// OnGPULost has tell called with each GPU that can no longer be read, on the goroutine that reads them, until forget is
// called.
func (m *Monitor) OnGPULost(tell func(events.GPULost)) (forget func()) {
	return listen(m, &m.onLost, tell)
}

// withoutGPU says that err is no problem: this machine has no NVIDIA driver that could be asked.
func (m *Monitor) withoutGPU(err error) bool {
	if !errors.Is(err, gpu.ErrNoDriver) && !errors.Is(err, gpu.ErrNotBuilt) || m.config.NVML != "" {
		return false
	}
	_, there := os.Stat(filepath.Join("/", m.config.Root, "proc/driver/nvidia"))
	return there != nil
}

// CatchUp has the GPUs' drivers asked for what is new, and returns when that is in the history: after 50 ms at most.
// Without a GPU it returns at once.
func (m *Monitor) CatchUp() {
	if m.gpus == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), freshGPUs)
	defer cancel()
	m.gpus.stream.CatchUp(ctx)
}
