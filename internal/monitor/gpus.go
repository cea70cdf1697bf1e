package monitor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

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
	m.mu.Unlock()
	m.gpus.once.Do(func() { close(m.gpus.first) })
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
