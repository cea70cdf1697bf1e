//go:build amd64 || arm64

package helper

import (
	"errors"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/latency"
	"github.com/stallspan/stallspan/internal/source/schedule"
)

// OpenLatency implements latency.Opener.
func (t *Tracer) OpenLatency(with schedule.Tracing) (latency.Tracing, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := traceQuestion{op: opMeasure}
	if followed, ok := with.(*traced); ok {
		if followed.life != t.life {
			return nil, errTracerEnded
		}
		q.handle = followed.handle
	}
	body, descriptors, err := t.ask(&q, loadWait)
	if err != nil {
		return nil, err // not a nil *counted
	}
	var a traceAnswer
	err = a.parse(body)
	switch {
	case err != nil:
	case a.reason != "":
		err = errors.New(a.reason)
	case len(descriptors) == 2:
		return &counted{tracer: t, life: t.life, descriptors: descriptors, lacks: a.lacks}, nil
	default:
		err = errFrame
	}
	closeAll(descriptors)
	return nil, err
}

// counted is a latency.Tracing of the helper.
type counted struct {
	tracer      *Tracer
	life        uint64
	descriptors []int
	lacks       []string
}

// Lacks implements latency.Tracing.
func (c *counted) Lacks() []string { return c.lacks }

// Memory implements latency.Tracing.
func (c *counted) Memory() latency.Memory {
	return latency.Memory{Cells: c.descriptors[0], Directory: c.descriptors[1]}
}

// Ended returns why it does so no more; nil if it does.
func (c *counted) Ended() error { return (&traced{tracer: c.tracer, life: c.life}).Ended() }

// Close ends it.
func (c *counted) Close() error {
	t := traced{tracer: c.tracer, life: c.life}
	err := t.ask(&traceQuestion{op: opUnmeasure})
	closeAll(c.descriptors)
	c.descriptors = nil
	if errors.Is(err, errTracerEnded) || errors.Is(err, errTracerGone) || errors.Is(err, syscall.EBADF) {
		return nil // it ended with its helper
	}
	return err
}
