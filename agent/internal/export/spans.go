package export

import (
	"context"
	"reflect"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/emit/queue"
)

// Bounds of a queue and of its batches. A gRPC server accepts 4 MiB by default; on the wire a span is smaller than in
// memory.
const (
	maxSpanBytes  = 16 << 20
	maxBatchItems = 512
	maxBatchBytes = 2 << 20
	batchDelay    = time.Second
	minPause      = time.Second
	maxPause      = 40 * time.Second // plus or minus half of it
)

// batcher is the part that the processors of spans and of log records share: a queue in front of an exporter.
type batcher[T any] struct {
	queue    *queue.Queue[T]
	shutdown func(context.Context) error
	once     sync.Once
}

func newBatcher[T any](
	send func(context.Context, []T) error, shutdown func(context.Context) error, maxBytes int,
) *batcher[T] {
	b := &batcher[T]{shutdown: shutdown, queue: queue.New(queue.Options[T]{
		Send: send, MaxBytes: maxBytes, MaxBatchItems: maxBatchItems, MaxBatchBytes: maxBatchBytes,
		Delay: batchDelay, MinPause: minPause, MaxPause: maxPause,
	})}
	b.queue.Start()
	return b
}

// ForceFlush waits until what is queued now has left.
func (b *batcher[T]) ForceFlush(ctx context.Context) error { return b.queue.Flush(ctx) }

// Shutdown sends until the queue is empty or ctx ends, and stops the exporter.
func (b *batcher[T]) Shutdown(ctx context.Context) (err error) {
	b.queue.Close(ctx)
	b.once.Do(func() { err = b.shutdown(ctx) })
	return err
}

// spanProcessor queues ended spans. The queue holds at most 16 MiB, by the estimate of spanSize: 2,500 large windows,
// each a slow epoch with an event and three storage stalls, 6.5 kB in all. At one epoch a minute, no span is lost while
// a backend is away for 41 hours. (TestQueueHolds measures these numbers.)
type spanProcessor struct {
	*batcher[sdktrace.ReadOnlySpan]

	machine   *resource.Resource // without this process
	resources sync.Map           // of spans that end now and have one of their own: trace.SpanID, jobResource
}

func newSpanProcessor(exporter sdktrace.SpanExporter, machine *resource.Resource) *spanProcessor {
	return &spanProcessor{batcher: newBatcher(exporter.ExportSpans, exporter.Shutdown, maxSpanBytes), machine: machine}
}

// resourceOf returns the resource of a job's spans, or nil without a job. The SDK has one for all spans of a tracer.
func (p *spanProcessor) resourceOf(job *emit.Job) *resource.Resource {
	if job == nil {
		return nil
	}
	return resource.NewWithAttributes(p.machine.SchemaURL(), job.Resource(p.machine.Attributes())...)
}

// jobSpan is a span with the resource of its job.
type jobSpan struct {
	sdktrace.ReadOnlySpan

	jobResource
}

// jobResource is a resource that a window's span and its children share.
type jobResource struct {
	*resource.Resource

	counts bool // in the size of the span
}

func (s jobSpan) Resource() *resource.Resource { return s.jobResource.Resource }

// OnStart implements sdktrace.SpanProcessor.
func (p *spanProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor. It never blocks.
func (p *spanProcessor) OnEnd(span sdktrace.ReadOnlySpan) {
	if of, own := p.resources.LoadAndDelete(span.SpanContext().SpanID()); own {
		span = jobSpan{span, of.(jobResource)}
	}
	if span.SpanContext().IsSampled() {
		p.queue.Push(span, spanSize(span))
	}
}

// Memory of the SDK's types, in bytes, without their text.
var (
	eventBytes = int(reflect.TypeFor[sdktrace.Event]().Size())
	linkBytes  = int(reflect.TypeFor[sdktrace.Link]().Size())
)

// bareSpanBytes is the memory of an ended span without attributes, with its entry in the queue. The scope is shared, as
// is the resource, unless it is a job's.
const bareSpanBytes = 640

// spanSize estimates the memory of a queued span.
func spanSize(s sdktrace.ReadOnlySpan) int {
	n := bareSpanBytes + len(s.Name()) + queue.AttributeBytes(s.Attributes())
	if of, own := s.(jobSpan); own && of.counts {
		n += queue.AttributeBytes(of.jobResource.Attributes())
	}
	for _, e := range s.Events() {
		n += eventBytes + len(e.Name) + queue.AttributeBytes(e.Attributes)
	}
	for _, l := range s.Links() {
		n += linkBytes + queue.AttributeBytes(l.Attributes)
	}
	return n
}
