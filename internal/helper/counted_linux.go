//go:build amd64 || arm64

package helper

import (
	"errors"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/latency"
	"github.com/stallspan/stallspan/internal/source/opens"
	"github.com/stallspan/stallspan/internal/source/schedule"
)

// OpenLatency implements latency.Opener.
func (t *Tracer) OpenLatency(with schedule.Tracing) (latency.Tracing, error) {
	c, _, err := t.load(&traceQuestion{op: opMeasure}, opUnmeasure, with)
	if err != nil {
		return nil, err // not a nil *counted
	}
	return timing{c}, nil
}

// OpenOpens implements opens.Opener.
func (t *Tracer) OpenOpens(with schedule.Tracing, o opens.Options) (opens.Tracing, error) {
	c, size, err := t.load(&traceQuestion{op: opOpens, others: o.Others}, opUnopens, with)
	if err != nil {
		return nil, err
	}
	return watching{c, size}, nil
}

// load has the helper load programs that share the maps of a schedule.Tracing. It returns the size that the answer has.
func (t *Tracer) load(q *traceQuestion, ends op, with schedule.Tracing) (c *counted, size int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if followed, ok := with.(*traced); ok {
		if followed.life != t.life {
			return nil, 0, errTracerEnded
		}
		q.handle = followed.handle
	}
	body, descriptors, err := t.ask(q, loadWait)
	if err != nil {
		return nil, 0, err
	}
	var a traceAnswer
	err = a.parse(body)
	switch {
	case err != nil:
	case a.reason != "":
		err = errors.New(a.reason)
	case len(descriptors) == 2:
		return &counted{tracer: t, life: t.life, ends: ends, descriptors: descriptors}, int(a.eventBytes), nil
	default:
		err = errFrame
	}
	closeAll(descriptors)
	return nil, 0, err
}

// counted is what the helper does with programs besides those of a schedule.Tracing.
type counted struct {
	tracer      *Tracer
	life        uint64
	ends        op // the question that ends it
	descriptors []int
}

// timing is a latency.Tracing of the helper.
type timing struct{ *counted }

// Memory implements latency.Tracing.
func (c timing) Memory() latency.Memory {
	return latency.Memory{Cells: c.descriptors[0], Directory: c.descriptors[1]}
}

// watching is an opens.Tracing of the helper.
type watching struct {
	*counted
	eventBytes int
}

// Memory implements opens.Tracing.
func (w watching) Memory() opens.Memory {
	return opens.Memory{Events: w.descriptors[0], Counters: w.descriptors[1], EventBytes: w.eventBytes}
}

// Ended returns why it does so no more; nil if it does.
func (c *counted) Ended() error { return (&traced{tracer: c.tracer, life: c.life}).Ended() }

// Close ends it.
func (c *counted) Close() error {
	t := traced{tracer: c.tracer, life: c.life}
	err := t.ask(&traceQuestion{op: c.ends})
	closeAll(c.descriptors)
	c.descriptors = nil
	if errors.Is(err, errTracerEnded) || errors.Is(err, errTracerGone) || errors.Is(err, syscall.EBADF) {
		return nil // it ended with its helper
	}
	return err
}
