package agent

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/queue"
)

const (
	handoverBytes   = 256 << 10       // of the events that wait for the agent
	handoverTimeout = 2 * time.Second // of one request
	handoverTime    = time.Second     // for which run waits at its end
	eventBytes      = 2 << 10         // of an event, about
)

// handover gives the events of a run's slow windows to the agent of this machine, if there is one that may be asked. It
// never blocks the program.
type handover struct {
	sockets []string
	queue   *queue.Queue[emit.Event]
}

func newHandover(sockets []string) *handover {
	h := &handover{sockets: sockets}
	h.queue = queue.New(queue.Options[emit.Event]{Send: h.send, MaxBytes: handoverBytes, MaxBatchItems: 1})
	h.queue.Start()
	return h
}

// send gives events to the first server that takes them. Without one they are in the report of the run alone, so there
// is no second try.
func (h *handover) send(ctx context.Context, batch []emit.Event) (err error) {
	for i := range batch {
		for _, socket := range h.sockets {
			if err = report(ctx, socket, &batch[i]); err == nil {
				break
			}
		}
	}
	if err != nil {
		return &queue.Refusal{Items: -1, Err: err}
	}
	return nil
}

func report(ctx context.Context, socket string, e *emit.Event) error {
	ctx, cancel := context.WithTimeout(ctx, handoverTimeout)
	defer cancel()
	return api.NewClient(socket).Report(ctx, e)
}

// close waits until all is sent, but not for long. A nil handover has nothing to send.
func (h *handover) close(ctx context.Context) {
	if h == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handoverTime)
	defer cancel()
	h.queue.Close(ctx)
}

// post queues an event of a window, and ignores others.
func (h *handover) post(e emit.Event, span trace.SpanContext) {
	if e.Reportable() {
		h.queue.Push(e.Identified(span), eventBytes)
	}
}
