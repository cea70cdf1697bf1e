package receiver

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// taker is a pipeline: it takes what it is offered, unless refuse says otherwise.
type taker struct {
	mu      sync.Mutex
	refuse  error
	took    []int
	offered int
}

func (k *taker) take(_ context.Context, batch []int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.offered++
	if k.refuse != nil {
		return k.refuse
	}
	k.took = append(k.took, batch...)
	return nil
}

func box(k *taker) (*outbox[int], *observer.ObservedLogs) {
	core, logs := observer.New(zap.InfoLevel)
	return newOutbox("numbers", zap.New(core), k.take), logs
}

func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &taker{}
		o, logs := box(k)
		o.put(0, 1) // before it is started
		o.start()
		for i := range 1000 {
			o.put(1+i, 1)
		}
		synctest.Wait()
		o.put(1001, 1)
		o.stop(t.Context())
		for i, v := range k.took {
			if v != i {
				t.Fatalf("number %d is %d", i, v)
			}
		}
		if len(k.took) != 1002 || o.lost() != 0 || logs.Len() != 0 || o.bytes != 0 {
			t.Errorf("%d taken, %d lost, %v", len(k.took), o.lost(), logs.All())
		}
	})
}

// What is refused for the moment is kept for longer than any pause.
func TestOutboxWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &taker{refuse: errors.New("not now")}
		o, logs := box(k)
		o.start()
		o.put(1, 1)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := k.offered; n < 100 || n > 200 {
			t.Errorf("offered %d times in ten minutes", n)
		}
		if n := logs.Len(); n < 2 || n > 60 {
			t.Errorf("%d lines in ten minutes", n)
		}
		k.mu.Lock()
		k.refuse = nil
		k.mu.Unlock()
		time.Sleep(mostPause)
		synctest.Wait()
		if len(k.took) != 1 || o.lost() != 0 {
			t.Errorf("%v taken, %d lost", k.took, o.lost())
		}
		o.stop(t.Context())
	})
}

func TestOutboxLoses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &taker{refuse: consumererror.NewPermanent(errors.New("never"))}
		o, logs := box(k)
		o.start()
		for i := range 100 {
			o.put(i, 1)
			synctest.Wait()
		}
		if o.lost() != 100 || logs.Len() != 1 {
			t.Errorf("%d lost, %v", o.lost(), logs.All())
		}
		o.stop(t.Context()) // the rest is told at the end
		if n := logs.FilterMessage("numbers of windows were lost"); n.Len() != 2 || n.All()[1].ContextMap()["count"] != int64(99) {
			t.Error(logs.All())
		}
	})
}

// A pipeline that takes nothing costs a bounded amount of memory, and what is oldest.
func TestOutboxIsBounded(t *testing.T) {
	k := &taker{}
	o, logs := box(k)
	for i := range 40 {
		o.put(i, 1<<20)
	}
	if o.bytes != mostBytes || len(o.waiting) != 32 || o.lost() != 8 || logs.Len() != 1 {
		t.Errorf("%d bytes, %d wait, %d lost", o.bytes, len(o.waiting), o.lost())
	}
	o.start()
	o.stop(t.Context())
	if len(k.took) != 32 || k.took[0] != 8 {
		t.Error(k.took)
	}
}

// A pipeline that hangs ends with the time for flushing.
func TestOutboxHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox("numbers", zap.NewNop(), func(ctx context.Context, _ []int) error {
			<-ctx.Done()
			return ctx.Err()
		})
		o.start()
		o.put(1, 1)
		ctx, cancel := context.WithTimeout(t.Context(), flushTime)
		defer cancel()
		began := time.Now()
		o.stop(ctx)
		if waited := time.Since(began); waited != flushTime || o.lost() != 1 {
			t.Errorf("%v, %d lost", waited, o.lost())
		}
	})
}

func TestNoOutbox(t *testing.T) {
	var o *outbox[int]
	o.start()
	o.put(1, 1)
	o.stop(t.Context())
	if o.lost() != 0 {
		t.Error(o.lost())
	}
}
