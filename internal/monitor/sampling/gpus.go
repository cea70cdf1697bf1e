package sampling

import (
	"context"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/gpu"
)

const (
	firstGPUs = 2 * time.Second       // how long WaitForGPUs waits for the driver's list of GPUs
	freshGPUs = 50 * time.Millisecond // how long the end of a window waits for the driver's newest samples
)

// gpus is the source with a time axis of its own: its readings come up to a second late.
type gpus struct {
	stream sample.Stream
	once   sync.Once
	first  chan struct{} // closed after the first reading
}

// SetGPUs replaces the source of the GPUs. Call it before Run.
func (s *Sources) SetGPUs(stream sample.Stream) {
	s.gpus = gpus{stream: stream, first: make(chan struct{})}
}

// newGPUs returns the source of all GPUs of this machine.
func newGPUs(c *SourceConfig) gpus {
	source := gpu.New(gpu.Options{Library: c.NVML, Root: c.Root, Interval: c.Interval})
	return gpus{stream: source, first: make(chan struct{})}
}

// sink passes readings on.
func (g *gpus) sink(next sample.Sink) sample.Sink {
	return func(source string, s *sample.Sample, err error) {
		next(source, s, err)
		g.once.Do(func() { close(g.first) })
	}
}

// WaitForGPUs returns when the driver has listed its GPUs, or none: after 2 s at most.
func (s *Sources) WaitForGPUs() {
	if s.gpus.stream == nil {
		return
	}
	select {
	case <-s.gpus.first:
	case <-time.After(firstGPUs):
	}
}

// CatchUp requests the newest samples of the GPUs, and returns when the sink has them: after 50 ms at most.
func (s *Sources) CatchUp() {
	if s.gpus.stream == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), freshGPUs)
	defer cancel()
	s.gpus.stream.CatchUp(ctx)
}

// requestGPUs requests the newest samples of the GPUs, and returns at once.
func (s *Sources) requestGPUs() {
	if s.gpus.stream == nil {
		return
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	s.gpus.stream.CatchUp(over)
}

// memorySource has the memory in use of GPUs apart from rows. It is implemented by gpu.Source.
type memorySource interface {
	WatchMemory(ids []string, until time.Duration)
	Memory(id string) (used uint64, at time.Duration)
}

// releasedIn is how soon the driver's files must be closed.
const releasedIn = time.Second

// ReleaseGPUs has all files of the GPUs' driver closed for a time, or opened again with 0. It returns once they are
// closed, or an error.
func (s *Sources) ReleaseGPUs(length time.Duration) error {
	source, ok := s.gpus.stream.(interface {
		Release(ctx context.Context, length time.Duration) error
	})
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), releasedIn)
	defer cancel()
	return source.Release(ctx, length)
}

// WatchMemory has the memory of GPUs read ten times a second until a moment, where their source can do so. Otherwise it
// is read once a second.
func (s *Sources) WatchMemory(ids []string, until time.Duration) {
	if source, ok := s.gpus.stream.(memorySource); ok {
		source.WatchMemory(ids, until)
	}
}

// Memory returns the newest reading of the memory in use of a GPU, in bytes, and when that was; 0 if it is not known.
// It may be newer than the newest row.
func (s *Sources) Memory(gpu string) (used uint64, at time.Duration) {
	if source, ok := s.gpus.stream.(memorySource); ok {
		return source.Memory(gpu)
	}
	return 0, 0
}
