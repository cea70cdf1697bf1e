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

// queue is that of the spans. It holds at most 16 MiB, by the estimate of spanSize. That is 2,800 windows of the larger
// kind, a slow epoch with an event and three storage stalls, of 5.8 kB together: at one epoch a minute, a backend may be
// away for 46 hours and nothing is lost. (TestQueueHolds measures these numbers.)
type queue struct {
	*line[sdktrace.ReadOnlySpan]
}

// newQueue begins to send to exporter, which it shuts down in the end.
func newQueue(exporter sdktrace.SpanExporter, limit int) *queue {
	return &queue{newLine(exporter.ExportSpans, exporter.Shutdown, limit)}
}

// OnStart implements sdktrace.SpanProcessor.
func (q *queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor. It never blocks.
func (q *queue) OnEnd(span sdktrace.ReadOnlySpan) {
	if span.SpanContext().IsSampled() {
		q.push(span, spanSize(span))
	}
}

func (q *queue) stats() Stats {
	c := q.counts()
	return Stats{SpansExported: c.exported, SpansDropped: c.dropped, SpansRefused: c.refused, SpansUnsent: c.unsent, SpanError: c.err}
}

var _ sdktrace.SpanProcessor = (*queue)(nil)

// line stands where the SDK's batch processors would, which forget what they hold after a minute of a backend's absence.
// When it is full, the oldest go, and are counted.
//
// One goroutine sends, in order, batches of at most 512. A batch that fails is sent again, without end, with pauses that
// grow from 1 s to 60 s; one that the backend refuses is dropped and counted. A line is safe for concurrent use.
type line[T any] struct {
	export   func(context.Context, []T) error
	shutdown func(context.Context) error
	limit    int // bytes

	ready  chan struct{} // a batch may be due
	hurry  chan struct{} // somebody waits: end the pause
	cancel context.CancelFunc
	done   chan struct{} // the goroutine has ended
	stop   sync.Once

	mu      sync.Mutex
	items   []entry[T] // oldest first
	bytes   int        // of them all
	sending int        // so many of the oldest are with the exporter and cannot be dropped
	waiting int        // Flushes under way
	closing bool
	pushed  uint64
	moved   chan struct{} // closed, and made anew, whenever some have left
	count   counts
	last    error // of the last batch, nil when it was taken
}

// failing is why the last batch was not taken.
func (q *line[T]) failing() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.last
}

type entry[T any] struct {
	item T
	size int
}

// counts is what became of everything that a line was given.
type counts struct {
	exported, dropped, refused, unsent uint64
	err                                error // the last one met
}

// newLine begins to send by export. In the end it calls shutdown.
func newLine[T any](export func(context.Context, []T) error, shutdown func(context.Context) error, limit int) *line[T] {
	ctx, cancel := context.WithCancel(context.Background())
	q := &line[T]{
		export:   export,
		shutdown: shutdown,
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

// push takes an item of about that many bytes. It never blocks.
func (q *line[T]) push(item T, size int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = append(q.items, entry[T]{item, size})
	q.bytes += size
	q.pushed++
	for q.bytes > q.limit && len(q.items) > q.sending {
		q.dropOldest()
	}
	if n := len(q.items); n == 1 || n >= maxBatchSpans || q.bytes >= maxBatchBytes {
		signalOnce(q.ready)
	}
}

// dropOldest makes room. q.mu is held.
func (q *line[T]) dropOldest() {
	q.bytes -= q.items[q.sending].size
	copy(q.items[1:], q.items[:q.sending])
	q.items[0] = entry[T]{} // the array behind the slice lives on
	q.items = q.items[1:]
	q.count.dropped++
	q.announce()
}

// announce wakes those who wait for something to leave. q.mu is held.
func (q *line[T]) announce() {
	close(q.moved)
	q.moved = make(chan struct{})
}

// ForceFlush waits until what is queued now has left.
func (q *line[T]) ForceFlush(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting++
	defer func() { q.waiting-- }()
	target := q.pushed
	signalOnce(q.hurry)
	for q.count.exported+q.count.refused+q.count.dropped < target {
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

// Shutdown sends until the queue is empty or ctx ends, and stops.
func (q *line[T]) Shutdown(ctx context.Context) error {
	q.mu.Lock()
	q.closing = true
	q.mu.Unlock()
	signalOnce(q.hurry)
	defer context.AfterFunc(ctx, q.cancel)()
	<-q.done
	q.cancel()
	var err error
	q.stop.Do(func() { err = q.shutdown(ctx) })
	return err
}

func (q *line[T]) counts() counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.count
	c.unsent = uint64(len(q.items))
	return c
}

// signalOnce leaves a signal unless one is there already.
func signalOnce(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
