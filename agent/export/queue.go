package export

import (
	"context"
	"errors"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Bounds of the queue, and of what it sends at once. A gRPC server takes 4 MiB at a time unless told otherwise; what
// a span takes on the wire is less than what it takes here.
const (
	maxQueueBytes = 16 << 20
	maxBatchSpans = 512
	maxBatchBytes = 2 << 20
	batchDelay    = time.Second // for which the first span waits for company
)

// queue stands where the SDK's batch processor would, which forgets spans after a minute of a backend's absence.
//
// It holds at most 16 MiB, by the estimate of spanSize. That is 2,800 windows of the larger kind, a slow epoch with
// an event and three storage stalls, of 5.8 kB together: at one epoch a minute, a backend may be away for 46 hours
// and nothing is lost. When it is full, the oldest spans go, and are counted. (TestQueueHolds measures these numbers.)
//
// One goroutine sends, in order, batches of at most 512 spans. A batch that fails is sent again, without end, with
// pauses that grow from 1 s to 60 s; one that the backend refuses is dropped and counted. queue is safe for
// concurrent use.
type queue struct {
	exporter sdktrace.SpanExporter
	limit    int // bytes

	ready  chan struct{} // a batch may be due
	hurry  chan struct{} // somebody waits: end the pause
	cancel context.CancelFunc
	done   chan struct{} // the goroutine has ended
	stop   sync.Once

	mu      sync.Mutex
	spans   []entry // oldest first
	bytes   int     // of them all
	sending int     // so many of the oldest are with the exporter and cannot be dropped
	waiting int     // Flushes under way
	closing bool
	pushed  uint64
	moved   chan struct{} // closed, and made anew, whenever spans have left
	count   Stats
	last    error // of the last batch, nil when it was taken
}

// failing is why the last batch was not taken.
func (q *queue) failing() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.last
}

type entry struct {
	span sdktrace.ReadOnlySpan
	size int
}

// newQueue begins to send to exporter, which it shuts down in the end.
func newQueue(exporter sdktrace.SpanExporter, limit int) *queue {
	ctx, cancel := context.WithCancel(context.Background())
	q := &queue{
		exporter: exporter,
		limit:    limit,
		ready:    make(chan struct{}, 1),
		hurry:    make(chan struct{}, 1),
		cancel:   cancel,
		done:     make(chan struct{}),
		moved:    make(chan struct{}),
	}
	go q.run(ctx)
	return q
}

// OnStart implements sdktrace.SpanProcessor.
func (q *queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor. It never blocks.
func (q *queue) OnEnd(span sdktrace.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	size := spanSize(span)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spans = append(q.spans, entry{span, size})
	q.bytes += size
	q.pushed++
	for q.bytes > q.limit && len(q.spans) > q.sending {
		q.dropOldest()
	}
	if n := len(q.spans); n == 1 || n >= maxBatchSpans || q.bytes >= maxBatchBytes {
		signalOnce(q.ready)
	}
}

// dropOldest makes room. q.mu is held.
func (q *queue) dropOldest() {
	q.bytes -= q.spans[q.sending].size
	copy(q.spans[1:], q.spans[:q.sending])
	q.spans[0] = entry{} // the array behind the slice lives on
	q.spans = q.spans[1:]
	q.count.SpansDropped++
	q.announce()
}

// announce wakes those who wait for spans to leave. q.mu is held.
func (q *queue) announce() {
	close(q.moved)
	q.moved = make(chan struct{})
}

// ForceFlush implements sdktrace.SpanProcessor: it waits until the spans that are queued now have left.
func (q *queue) ForceFlush(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting++
	defer func() { q.waiting-- }()
	target := q.pushed
	signalOnce(q.hurry)
	for q.count.SpansExported+q.count.SpansRefused+q.count.SpansDropped < target {
		moved := q.moved
		q.mu.Unlock()
		var err error
		select {
		case <-moved:
		case <-q.done:
			err = errors.New("the exporter is closed")
		case <-ctx.Done():
			err = ctx.Err()
		}
		q.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

// Shutdown implements sdktrace.SpanProcessor: it sends until the queue is empty or ctx ends, and stops.
func (q *queue) Shutdown(ctx context.Context) error {
	q.mu.Lock()
	q.closing = true
	q.mu.Unlock()
	signalOnce(q.hurry)
	defer context.AfterFunc(ctx, q.cancel)()
	<-q.done
	q.cancel()
	var err error
	q.stop.Do(func() { err = q.exporter.Shutdown(ctx) })
	return err
}

func (q *queue) stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.count
	s.SpansUnsent = uint64(len(q.spans))
	return s
}

// signalOnce leaves a signal unless one is there already.
func signalOnce(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

var _ sdktrace.SpanProcessor = (*queue)(nil)
