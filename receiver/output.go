//go:build linux && (amd64 || arm64)

package receiver

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/stallspan/stallspan/internal/emit/queue"
)

// Bounds of an output.
const (
	maxQueueBytes = 32 << 20
	maxBatchItems = 256
	minPause      = 100 * time.Millisecond
	maxPause      = 5 * time.Second
	logInterval   = 10 * time.Second // at least, between two lines of one kind
)

// output is the queue in front of a pipeline. A window may be ended by the goroutine that samples, and a client waits
// for its answer, so neither may wait for a pipeline. A batch that the pipeline refuses for the moment, as the memory
// limiter does, is offered again. A nil *output drops everything.
type output[T any] struct {
	queue  *queue.Queue[T]
	name   string // of the items, for the log
	logger *zap.Logger
	warns  rate.Sometimes // of what the pipeline refuses

	mu       sync.Mutex
	closed   bool
	unlogged int // lost items that no line of the log counts yet
	why      error
	logged   time.Time // when the last line of lost items was written
}

// newOutput returns an output whose queue is not started. deliver passes a batch to the pipeline.
func newOutput[T any](name string, logger *zap.Logger, deliver func(context.Context, []T) error) *output[T] {
	o := &output[T]{name: name, logger: logger, warns: rate.Sometimes{Interval: logInterval}}
	o.queue = queue.New(queue.Options[T]{
		Send: func(ctx context.Context, batch []T) error {
			err := deliver(ctx, batch)
			if consumererror.IsPermanent(err) {
				return &queue.Refusal{Items: -1, Err: err}
			}
			return err
		},
		MaxBytes: maxQueueBytes, MaxBatchItems: maxBatchItems, MinPause: minPause, MaxPause: maxPause,
		OnRetry: o.logRefused, OnLost: o.noteLost,
	})
	return o
}

func (o *output[T]) start() {
	if o != nil {
		o.queue.Start()
	}
}

// push adds an item of about size bytes. It never blocks.
func (o *output[T]) push(item T, size int) {
	if o != nil {
		o.queue.Push(item, size)
	}
}

// close offers what is left until ctx ends.
func (o *output[T]) close(ctx context.Context) {
	if o == nil {
		return
	}
	o.queue.Close(ctx)
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	if c := o.queue.Counts(); c.Waiting > 0 {
		o.noteLost(int(c.Waiting), c.LastError)
	}
	o.logLost(0)
}

// lost returns how many items were lost.
func (o *output[T]) lost() int64 {
	if o == nil {
		return 0
	}
	c := o.queue.Counts()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return int64(c.Dropped + c.Refused + c.Waiting)
	}
	return int64(c.Dropped + c.Refused)
}

func (o *output[T]) noteLost(n int, why error) {
	o.mu.Lock()
	o.unlogged += n
	o.why = why
	o.mu.Unlock()
	o.logLost(logInterval)
}

// logLost logs the items that were lost since the last line, unless that line is younger than interval.
func (o *output[T]) logLost(interval time.Duration) {
	o.mu.Lock()
	n, why := o.unlogged, o.why
	due := n > 0 && time.Since(o.logged) >= interval
	if due {
		o.unlogged, o.logged = 0, time.Now()
	}
	o.mu.Unlock()
	if due {
		o.logger.Error(o.name+" of windows were lost", zap.Int("count", n), zap.Error(why))
	}
}

func (o *output[T]) logRefused(err error) {
	o.warns.Do(func() {
		o.logger.Warn("the pipeline refuses "+o.name+" of windows, they are offered again", zap.Error(err))
	})
}
