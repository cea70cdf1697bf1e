package export

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/stallspan/stallspan/internal/session"
)

// memory is an exporter that keeps spans by name, and fails while it is told to.
type memory struct {
	mu    sync.Mutex
	fail  error
	tries []time.Time
	names []string
	sizes []int
	shut  bool
}

func (m *memory) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tries = append(m.tries, time.Now())
	if m.fail != nil {
		return m.fail
	}
	for _, s := range spans {
		m.names = append(m.names, s.Name())
	}
	m.sizes = append(m.sizes, len(spans))
	return ctx.Err()
}

func (m *memory) Shutdown(context.Context) error {
	m.shut = true
	return nil
}

// seen gives when exports were tried, and how large the batches were that passed.
func (m *memory) seen() (tries []time.Time, sizes []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.tries), slices.Clone(m.sizes)
}

func (m *memory) set(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

func named(name string) sdktrace.ReadOnlySpan {
	return tracetest.SpanStub{Name: name, SpanContext: session.Root()}.Snapshot()
}

func push(q *queue, from, to int) {
	for i := from; i < to; i++ {
		q.OnEnd(named(fmt.Sprint(i)))
	}
}

// checkNames finds the spans from..to in order.
func checkNames(t *testing.T, m *memory, from, to int) {
	t.Helper()
	if len(m.names) != to-from {
		t.Fatalf("%d spans arrived, want %d", len(m.names), to-from)
	}
	for i, name := range m.names {
		if name != fmt.Sprint(from+i) {
			t.Fatalf("span %d is %s", i, name)
		}
	}
}

func TestQueueBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		q := newQueue(&m, maxQueueBytes)
		began := time.Now()
		push(q, 0, 3)
		time.Sleep(batchDelay / 2)
		push(q, 3, 4)
		synctest.Wait()
		if tries, _ := m.seen(); len(tries) != 0 {
			t.Error("spans left before the batch was due")
		}
		time.Sleep(batchDelay / 2)
		synctest.Wait()
		if tries, sizes := m.seen(); len(sizes) != 1 || sizes[0] != 4 || tries[0].Sub(began) != batchDelay {
			t.Errorf("batches %v at %v", sizes, tries)
		}
		push(q, 4, 4+maxBatchSpans)
		synctest.Wait()
		if _, sizes := m.seen(); len(sizes) != 2 || sizes[1] != maxBatchSpans {
			t.Errorf("a full batch waits: %v", sizes)
		}
		push(q, 4+maxBatchSpans, 1204)
		if err := q.ForceFlush(t.Context()); err != nil {
			t.Error(err)
		}
		if err := q.Shutdown(t.Context()); err != nil || !m.shut {
			t.Error(err, m.shut)
		}
		checkNames(t, &m, 0, 1204)
		if err := q.ForceFlush(t.Context()); err != nil {
			t.Error(err) // all has left
		}
		q.OnEnd(named("late"))
		if err := q.ForceFlush(t.Context()); err == nil {
			t.Error("flushed after the end")
		}
		if s := q.stats(); s.SpansExported != 1204 || s.SpansUnsent != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestQueueSplitsBySize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m memory
		q := newQueue(&m, maxQueueBytes)
		long := strings.Repeat("x", maxBatchBytes/3)
		for _, name := range []string{long, long, long, strings.Repeat("y", 2*maxBatchBytes), "z"} {
			q.OnEnd(named(name))
		}
		if err := q.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if fmt.Sprint(m.sizes) != "[2 1 1 1]" {
			t.Errorf("batches %v", m.sizes)
		}
	})
}

// A backend that is away for five hours costs nothing but a try a minute.
func TestQueueOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory{fail: errors.New("connection refused")}
		q := newQueue(&m, maxQueueBytes)
		for i := range 300 {
			push(q, i, i+1)
			time.Sleep(time.Minute)
		}
		tries, _ := m.seen()
		for i := 1; i < len(tries); i++ {
			pause := tries[i].Sub(tries[i-1])
			base := min(firstPause<<min(i-1, 10), longestPause)
			if pause > base || pause < base/2 {
				t.Errorf("pause %d is %v, not %v to %v", i, pause, base/2, base)
			}
		}
		m.set(nil)
		time.Sleep(longestPause + batchDelay)
		if s := q.stats(); s.SpanError == nil || s.SpansExported != 300 {
			t.Errorf("%+v", s)
		}
		_ = q.Shutdown(t.Context())
		checkNames(t, &m, 0, 300)
	})
}

func TestQueueThrottle(t *testing.T) {
	for _, test := range []struct{ asked, want time.Duration }{
		{time.Second / 4, firstPause}, {3 * time.Minute, 3 * time.Minute}, {1000 * time.Hour, longestThrottle},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := memory{fail: &throttle{test.asked, errors.New("slow down")}}
			q := newQueue(&m, maxQueueBytes)
			push(q, 0, 1)
			time.Sleep(batchDelay + time.Millisecond)
			m.set(nil)
			time.Sleep(2 * longestThrottle)
			tries, _ := m.seen()
			if got := tries[1].Sub(tries[0]); got > test.want || got < test.want/2 {
				t.Errorf("asked for %v, waited %v", test.asked, got)
			}
			_ = q.Shutdown(t.Context())
			checkNames(t, &m, 0, 1)
		})
	}
}

func TestQueueShutdown(t *testing.T) {
	t.Run("ends a pause, and tries until ctx ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := memory{fail: errors.New("connection refused")}
			q := newQueue(&m, maxQueueBytes)
			push(q, 0, 5)
			time.Sleep(time.Hour)
			earlier, _ := m.seen()
			before, began := len(earlier), time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_ = q.Shutdown(ctx)
			if d := time.Since(began); d != 10*time.Second {
				t.Errorf("took %v", d)
			}
			if n := len(m.tries) - before; n < 3 || n > 8 || !m.tries[before].Equal(began) {
				t.Errorf("%d tries, the first after %v", n, m.tries[before].Sub(began))
			}
			if s := q.stats(); s.SpansUnsent != 5 || s.SpanError == nil || s.SpanError.Error() != "connection refused" {
				t.Errorf("%+v", s)
			}
		})
	})
	t.Run("returns at once when ctx has ended", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var m memory
			q := newQueue(&m, maxQueueBytes)
			push(q, 0, 5)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			began := time.Now()
			_ = q.Shutdown(ctx)
			_ = q.Shutdown(ctx)
			if s := q.stats(); !time.Now().Equal(began) || s.SpansUnsent+s.SpansExported != 5 {
				t.Errorf("%v, %+v", time.Since(began), s)
			}
		})
	})
}

func TestQueueOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory{fail: errors.New("connection refused")}
		size := spanSize(named("100"))
		q := newQueue(&m, 1000*size)
		push(q, 100, 1000)
		time.Sleep(time.Hour)
		push(q, 1000, 5000)
		if s := q.stats(); s.SpansDropped+s.SpansUnsent != 4900 || s.SpansUnsent < 990 || q.bytes > q.limit {
			t.Errorf("%+v, %d bytes of %d", s, q.bytes, q.limit)
		}
		q.OnEnd(named(strings.Repeat("x", 2000*size))) // larger than everything
		kept := int(q.stats().SpansUnsent)
		m.set(nil)
		_ = q.Shutdown(t.Context())
		if kept != 0 {
			t.Errorf("%d spans beside one that is too large", kept)
		}
	})
}

// What is with the exporter is not dropped under its hands; what came after it goes first.
func TestQueueOverflowWhileSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := &gated{open: make(chan struct{})}
		q := newQueue(gate, 600*spanSize(named("100")))
		push(q, 0, maxBatchSpans)
		synctest.Wait()
		push(q, maxBatchSpans, 2000)
		if s := q.stats(); s.SpansUnsent < 590 || s.SpansUnsent > 620 {
			t.Errorf("%+v", s)
		}
		close(gate.open)
		_ = q.Shutdown(t.Context())
		first, rest := gate.names[:maxBatchSpans], gate.names[maxBatchSpans:]
		if first[0] != "0" || first[maxBatchSpans-1] != fmt.Sprint(maxBatchSpans-1) {
			t.Errorf("the batch on its way changed: %v", first)
		}
		if rest[len(rest)-1] != "1999" || rest[0] != fmt.Sprint(2000-len(rest)) {
			t.Errorf("not the newest were kept: %v", rest)
		}
		if s := q.stats(); s.SpansExported+s.SpansDropped != 2000 || q.bytes != 0 {
			t.Errorf("%+v, %d bytes", s, q.bytes)
		}
	})
}

type gated struct {
	memory
	open chan struct{}
}

func (g *gated) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	<-g.open
	return g.memory.ExportSpans(ctx, spans)
}

func TestQueueRefusal(t *testing.T) {
	for _, test := range []struct {
		spans             int
		refused, exported uint64
	}{{-1, 5, 0}, {2, 2, 3}, {0, 0, 5}, {99, 5, 0}} {
		synctest.Test(t, func(t *testing.T) {
			m := memory{fail: fmt.Errorf("wrapped: %w", &refusal{test.spans, errors.New("no")})}
			q := newQueue(&m, maxQueueBytes)
			push(q, 0, 5)
			if err := q.ForceFlush(t.Context()); err != nil {
				t.Error(err)
			}
			if s := q.stats(); s.SpansRefused != test.refused || s.SpansExported != test.exported {
				t.Errorf("%+v", s)
			}
			_ = q.Shutdown(t.Context())
			if len(m.tries) != 1 {
				t.Errorf("%d tries", len(m.tries))
			}
		})
	}
}

func TestQueueFlushEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memory{fail: errors.New("connection refused")}
		q := newQueue(&m, maxQueueBytes)
		push(q, 0, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := q.ForceFlush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		m.set(nil)
		_ = q.Shutdown(t.Context())
		checkNames(t, &m, 0, 1)
	})
}
