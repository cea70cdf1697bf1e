package receiver

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"
)

// Bounds of an outbox, and of what it hands over at once.
const (
	mostBytes  = 32 << 20 // that wait: the oldest goes when there are more
	mostBatch  = 256
	firstPause = 100 * time.Millisecond // after which what was refused is offered again
	mostPause  = 5 * time.Second
	tellEvery  = 10 * time.Second // at most one line of log
)

// outbox hands what has ended over to a pipeline, on a goroutine of its own: a window may be ended by the goroutine
// that samples, and a client waits for its answer, so neither may wait for a pipeline. What a pipeline refuses for the
// moment, as the memory limiter does, is offered again. A nil one takes nothing and does nothing.
type outbox[T any] struct {
	what    string
	logger  *zap.Logger
	deliver func(context.Context, []T) error // the batch is the outbox's own

	ready   chan struct{} // something waits
	closing chan struct{} // closed when nothing more comes
	done    sync.WaitGroup
	cancel  context.CancelFunc // of deliveries; nil before start

	mu      sync.Mutex
	waiting []letter[T] // oldest first
	bytes   int         // of them
	gone    int64       // items that were lost
	untold  int64       // of those
	why     error       // the last of them was lost

	toldLost, toldRefused time.Time // when a line was written
}

type letter[T any] struct {
	item T
	size int // in bytes, about
}

func newOutbox[T any](what string, logger *zap.Logger, deliver func(context.Context, []T) error) *outbox[T] {
	return &outbox[T]{
		what: what, logger: logger, deliver: deliver,
		ready: make(chan struct{}, 1), closing: make(chan struct{}),
	}
}

// start begins to hand over.
func (o *outbox[T]) start() {
	if o == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.cancel = cancel
	o.done.Go(func() { o.run(ctx) })
}

// put takes an item of about that many bytes. It never waits.
func (o *outbox[T]) put(item T, size int) {
	if o == nil {
		return
	}
	o.mu.Lock()
	o.waiting = append(o.waiting, letter[T]{item, size})
	o.bytes += size
	over := 0
	for o.bytes > mostBytes {
		o.bytes -= o.waiting[0].size
		o.waiting[0] = letter[T]{} // the array behind the slice lives on
		o.waiting = o.waiting[1:]
		over++
	}
	o.mu.Unlock()
	if over > 0 {
		o.lose(over, errFull)
	}
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// stop offers what is left once more, until ctx ends, and waits for the goroutine. Nothing may be put in any more.
func (o *outbox[T]) stop(ctx context.Context) {
	if o == nil || o.cancel == nil {
		return
	}
	close(o.closing)
	stop := context.AfterFunc(ctx, o.cancel)
	defer stop()
	o.done.Wait()
	o.cancel()
	o.cancel = nil
}

// lost is how many items were lost.
func (o *outbox[T]) lost() int64 {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.gone
}

func (o *outbox[T]) run(ctx context.Context) {
	for {
		select {
		case <-o.ready:
		case <-o.closing:
		}
		last := o.over() // asked first: what was put in before it was so is still taken out
		for batch := o.take(); len(batch) > 0; batch = o.take() {
			o.offer(ctx, batch)
		}
		if last {
			o.tell(0)
			return
		}
	}
}

// take takes out what goes together.
func (o *outbox[T]) take() []T {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(len(o.waiting), mostBatch)
	batch := make([]T, n)
	for i := range n {
		batch[i] = o.waiting[i].item
		o.bytes -= o.waiting[i].size
		o.waiting[i] = letter[T]{}
	}
	o.waiting = o.waiting[n:]
	return batch
}

// offer hands a batch over, again and again while it is refused for the moment; once only when the outbox is closing.
func (o *outbox[T]) offer(ctx context.Context, batch []T) {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		last := o.over()
		err := o.deliver(ctx, batch)
		if err == nil {
			return
		}
		if last || consumererror.IsPermanent(err) {
			o.lose(len(batch), err)
			return
		}
		o.refused(err)
		select {
		case <-time.After(pause):
		case <-o.closing:
		}
	}
}

func (o *outbox[T]) over() bool {
	select {
	case <-o.closing:
		return true
	default:
		return false
	}
}
