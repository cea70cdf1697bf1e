//go:build linux && (amd64 || arm64)

package receiver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// numberPipeline accepts the numbers that it is offered, unless refuse is set.
type numberPipeline struct {
	mu       sync.Mutex
	refuse   error
	accepted []int
	offers   int
}

func (p *numberPipeline) deliver(_ context.Context, batch []int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offers++
	if p.refuse != nil {
		return p.refuse
	}
	p.accepted = append(p.accepted, batch...)
	return nil
}

func numbersTo(p *numberPipeline) (*output[int], *observer.ObservedLogs) {
	core, logs := observer.New(zap.InfoLevel)
	return newOutput("numbers", zap.New(core), p.deliver), logs
}

func TestOutputDelivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &numberPipeline{}
		o, logs := numbersTo(p)
		o.push(0, 1) // before start
		o.start()
		var want []int
		for i := range 1001 {
			if want = append(want, i); i > 0 {
				o.push(i, 1)
			}
		}
		synctest.Wait()
		o.push(1001, 1)
		o.close(t.Context())
		if want = append(want, 1001); !slices.Equal(p.accepted, want) {
			t.Errorf("accepted: got %v, want 0 to 1001 in order", p.accepted)
		}
		if o.lost() != 0 || logs.Len() != 0 {
			t.Errorf("got %d lost and the log %v, want neither", o.lost(), logs.All())
		}
	})
}

// A pipeline that refuses for longer than any pause gets everything in the end.
func TestOutputRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &numberPipeline{refuse: errors.New("not now")}
		o, logs := numbersTo(p)
		o.start()
		o.push(1, 1)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := p.offers; n < 100 || n > 200 {
			t.Errorf("offers in ten minutes: got %d, want 100 to 200", n)
		}
		if n := logs.Len(); n < 2 || n > 60 {
			t.Errorf("lines of log in ten minutes: got %d, want 2 to 60", n)
		}
		p.mu.Lock()
		p.refuse = nil
		p.mu.Unlock()
		time.Sleep(2 * maxPause)
		synctest.Wait()
		if len(p.accepted) != 1 || o.lost() != 0 {
			t.Errorf("got %v accepted and %d lost, want 1 and 0", p.accepted, o.lost())
		}
		o.close(t.Context())
	})
}

func TestOutputCountsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &numberPipeline{refuse: consumererror.NewPermanent(errors.New("never"))}
		o, logs := numbersTo(p)
		o.start()
		for i := range 100 {
			o.push(i, 1)
			synctest.Wait()
		}
		if o.lost() != 100 || logs.Len() != 1 {
			t.Errorf("got %d lost and the log %v, want 100 and one line", o.lost(), logs.All())
		}
		o.close(t.Context()) // logs the rest
		lines := logs.FilterMessage("numbers of windows were lost").All()
		if len(lines) != 2 || lines[1].ContextMap()["count"] != int64(99) {
			t.Errorf("log: got %v, want a second line with a count of 99", lines)
		}
	})
}

// A full queue drops the oldest items.
func TestOutputIsBounded(t *testing.T) {
	p := &numberPipeline{}
	o, logs := numbersTo(p)
	for i := range 40 {
		o.push(i, 1<<20)
	}
	if o.queue.Bytes() != maxQueueBytes || o.lost() != 8 || logs.Len() != 1 {
		t.Errorf("got %d bytes, %d lost and %d lines, want %d, 8 and 1",
			o.queue.Bytes(), o.lost(), logs.Len(), maxQueueBytes)
	}
	o.start()
	o.close(t.Context())
	if len(p.accepted) != 32 || p.accepted[0] != 8 {
		t.Errorf("accepted: got %v, want the 32 newest", p.accepted)
	}
}

// A pipeline that hangs delays the shutdown by flushBy, and what it holds is counted as lost.
func TestOutputHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutput("numbers", zap.NewNop(), func(ctx context.Context, _ []int) error {
			<-ctx.Done()
			return ctx.Err()
		})
		o.start()
		o.push(1, 1)
		ctx, cancel := context.WithTimeout(t.Context(), flushBy)
		defer cancel()
		began := time.Now()
		o.close(ctx)
		if took := time.Since(began); took != flushBy || o.lost() != 1 {
			t.Errorf("close took %v with %d lost, want %v with 1", took, o.lost(), flushBy)
		}
	})
}

func TestNoOutput(t *testing.T) {
	var o *output[int]
	o.start()
	o.push(1, 1)
	o.close(t.Context())
	if o.lost() != 0 {
		t.Errorf("lost: got %d, want 0", o.lost())
	}
}
