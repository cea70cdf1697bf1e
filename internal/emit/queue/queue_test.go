package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
)

var errDown = errors.New("connection refused")

// output keeps what it is sent, and fails while fail is set.
type output struct {
	mu   sync.Mutex
	fail error
	sent
}

// sent is what an output received.
type sent struct {
	tries   []time.Time
	batches []int // sizes of the accepted ones
	items   []int
}

func (o *output) send(ctx context.Context, batch []int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tries = append(o.tries, time.Now())
	if o.fail != nil {
		return o.fail
	}
	o.items = append(o.items, batch...)
	o.batches = append(o.batches, len(batch))
	return ctx.Err()
}

func (o *output) set(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail = err
}

// seen returns what the output received so far.
func (o *output) seen() sent {
	o.mu.Lock()
	defer o.mu.Unlock()
	return sent{slices.Clone(o.tries), slices.Clone(o.batches), slices.Clone(o.items)}
}

// options returns options like those of the agent's exporters.
func (o *output) options() Options[int] {
	return Options[int]{
		Send: o.send, MaxBytes: 1 << 20, MaxBatchItems: 512, MaxBatchBytes: 1 << 16,
		Delay: time.Second, MinPause: time.Second, MaxPause: 40 * time.Second,
	}
}

func start(o Options[int]) *Queue[int] {
	q := New(o)
	q.Start()
	return q
}

// push adds the numbers of [from, to), of one byte each.
func push(q *Queue[int], from, to int) {
	for i := from; i < to; i++ {
		q.Push(i, 1)
	}
}

// numbers returns [from, to).
func numbers(from, to int) []int {
	var list []int
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

func checkItems(t *testing.T, got []int, from, to int) {
	t.Helper()
	if want := numbers(from, to); !slices.Equal(got, want) {
		t.Errorf("sent items: got %v, want %d to %d in order", got, from, to-1)
	}
}

func checkCounts(t *testing.T, q *Queue[int], want Counts) {
	t.Helper()
	got := q.Counts()
	got.LastError, got.Failing = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counts: -want +got\n%s", diff)
	}
}

func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o output
		q := start(o.options())
		began := time.Now()
		push(q, 0, 3)
		time.Sleep(time.Second / 2)
		push(q, 3, 4)
		synctest.Wait()
		if len(o.seen().tries) != 0 {
			t.Errorf("batches before the delay is over: got %v, want none", o.seen().batches)
		}
		time.Sleep(time.Second / 2)
		synctest.Wait()
		if len(o.seen().batches) != 1 || o.seen().batches[0] != 4 || o.seen().tries[0].Sub(began) != time.Second {
			t.Errorf("got batches of %v at %v, want one of 4 after 1 s", o.seen().batches, o.seen().tries)
		}
		push(q, 4, 4+512)
		synctest.Wait()
		if len(o.seen().batches) != 2 || o.seen().batches[1] != 512 {
			t.Errorf("got batches of %v, want a full one of 512 at once", o.seen().batches)
		}
		push(q, 4+512, 1204)
		if err := q.Flush(t.Context()); err != nil {
			t.Errorf("Flush: got %v, want no error", err)
		}
		q.Close(t.Context())
		checkItems(t, o.seen().items, 0, 1204)
		if err := q.Flush(t.Context()); err != nil {
			t.Errorf("Flush of a closed, empty queue: got %v, want no error", err)
		}
		push(q, 0, 1)
		if err := q.Flush(t.Context()); !errors.Is(err, errClosed) {
			t.Errorf("Flush of a closed queue: got %v, want %v", err, errClosed)
		}
		checkCounts(t, q, Counts{Sent: 1204, Waiting: 1})
	})
}

func TestBatchesWithoutDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o output
		options := o.options()
		options.Delay = 0
		q := New(options)
		push(q, 0, 2) // before Start
		q.Start()
		synctest.Wait()
		push(q, 2, 3)
		synctest.Wait()
		if want := []int{2, 1}; !slices.Equal(o.seen().batches, want) {
			t.Errorf("got batches of %v, want %v", o.seen().batches, want)
		}
		q.Close(t.Context())
		checkItems(t, o.seen().items, 0, 3)
	})
}

func TestBatchBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o output
		q := start(o.options())
		for _, size := range []int{1 << 14, 1 << 15, 1 << 15, 1 << 17, 1} {
			q.Push(0, size)
		}
		q.Close(t.Context())
		if want := []int{2, 1, 1, 1}; !slices.Equal(o.seen().batches, want) {
			t.Errorf("got batches of %v, want %v", o.seen().batches, want)
		}
	})
}

// An outage of five hours costs a try each minute, and nothing is lost.
func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := output{fail: errDown}
		var retries atomic.Int64
		options := o.options()
		options.OnRetry = func(error) { retries.Add(1) }
		q := start(options)
		for i := range 300 {
			push(q, i, i+1)
			time.Sleep(time.Minute)
		}
		for i := 1; i < len(o.seen().tries); i++ {
			pause := o.seen().tries[i].Sub(o.seen().tries[i-1])
			middle := min(time.Second<<min(i-1, 10), 40*time.Second)
			if pause < middle/2 || pause > 3*middle/2 {
				t.Errorf("pause %d: got %v, want %v plus or minus half of it", i, pause, middle)
			}
		}
		if got := int(retries.Load()); got != len(o.seen().tries) {
			t.Errorf("calls of OnRetry: got %d, want %d", got, len(o.seen().tries))
		}
		o.set(nil)
		time.Sleep(time.Minute + time.Second)
		checkCounts(t, q, Counts{Sent: 300})
		if c := q.Counts(); !errors.Is(c.LastError, errDown) || c.Failing != nil {
			t.Errorf("got last error %v and failing %v, want %v and nil", c.LastError, c.Failing, errDown)
		}
		q.Close(t.Context())
		checkItems(t, o.seen().items, 0, 300)
	})
}

func TestThrottle(t *testing.T) {
	for _, test := range []struct{ after, want time.Duration }{
		{time.Second / 4, time.Second}, {3 * time.Minute, 3 * time.Minute}, {1000 * time.Hour, maxThrottle},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := output{fail: fmt.Errorf("wrapped: %w", &Throttle{test.after, errors.New("slow down")})}
			q := start(o.options())
			push(q, 0, 1)
			time.Sleep(time.Second + time.Millisecond)
			o.set(nil)
			time.Sleep(2 * maxThrottle)
			if got := o.seen().tries[1].Sub(o.seen().tries[0]); got > 3*test.want/2 || got < test.want/2 {
				t.Errorf("pause after a throttle of %v: got %v, want about %v", test.after, got, test.want)
			}
			q.Close(t.Context())
			checkItems(t, o.seen().items, 0, 1)
		})
	}
}

func TestCloseEndsPauseAndRetriesUntilDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := output{fail: errDown}
		q := start(o.options())
		push(q, 0, 5)
		time.Sleep(time.Hour)
		before, began := len(o.seen().tries), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		q.Close(ctx)
		if got := time.Since(began); got != 10*time.Second {
			t.Errorf("Close took %v, want 10 s", got)
		}
		if n := len(o.seen().tries) - before; n < 3 || n > 8 || !o.seen().tries[before].Equal(began) {
			t.Errorf("got %d tries, the first after %v, want 3 to 8, the first at once", n, o.seen().tries[before].Sub(began))
		}
		checkCounts(t, q, Counts{Waiting: 5})
		if got := q.Counts().LastError; !errors.Is(got, errDown) {
			t.Errorf("last error: got %v, want %v", got, errDown)
		}
	})
}

func TestCloseOfHangingSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := start(Options[int]{MaxBytes: 10, MaxBatchItems: 1, Send: func(ctx context.Context, _ []int) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		push(q, 0, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		q.Close(ctx)
		if got := time.Since(began); got != 10*time.Second {
			t.Errorf("Close took %v, want 10 s", got)
		}
		checkCounts(t, q, Counts{Waiting: 1})
	})
}

func TestCloseWithEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o output
		q := start(o.options())
		push(q, 0, 5)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		q.Close(ctx)
		q.Close(ctx)
		if c := q.Counts(); !time.Now().Equal(began) || c.Waiting+c.Sent != 5 {
			t.Errorf("Close took %v with counts %+v, want no time and 5 items", time.Since(began), c)
		}
	})
}

func TestOverflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := output{fail: errDown}
		options := o.options()
		options.MaxBytes = 1000
		var lost int
		var why error
		options.OnLost = func(n int, err error) { lost, why = lost+n, err }
		q := start(options)
		push(q, 100, 1000)
		time.Sleep(time.Hour)
		push(q, 1000, 5000)
		c := q.Counts()
		if c.Dropped+c.Waiting != 4900 || c.Waiting < 990 || q.Bytes() > 1000 {
			t.Errorf("got %+v in %d bytes, want 4900 dropped or waiting in at most 1000 bytes", c, q.Bytes())
		}
		if lost != int(c.Dropped) || !errors.Is(why, ErrFull) {
			t.Errorf("OnLost: got %d items, %v, want %d, %v", lost, why, c.Dropped, ErrFull)
		}
		q.Push(0, 2000) // larger than the queue
		if got := q.Counts().Waiting; got != 0 {
			t.Errorf("items next to one that is too large: got %d, want 0", got)
		}
		o.set(nil)
		q.Close(t.Context())
	})
}

// Items in flight are not dropped. The oldest of the others are.
func TestOverflowWhileSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o output
		open := make(chan struct{})
		options := o.options()
		options.MaxBytes = 600
		options.Send = func(ctx context.Context, batch []int) error {
			<-open
			return o.send(ctx, batch)
		}
		q := start(options)
		push(q, 0, 512)
		synctest.Wait()
		push(q, 512, 2000)
		checkCounts(t, q, Counts{Dropped: 1400, Waiting: 600})
		close(open)
		q.Close(t.Context())
		checkItems(t, o.seen().items[:512], 0, 512)
		checkItems(t, o.seen().items[512:], 1912, 2000)
		checkCounts(t, q, Counts{Sent: 600, Dropped: 1400})
		if q.Bytes() != 0 {
			t.Errorf("bytes of an empty queue: got %d, want 0", q.Bytes())
		}
	})
}

func TestRefusal(t *testing.T) {
	for _, test := range []struct {
		items         int
		refused, sent uint64
	}{{-1, 5, 0}, {2, 2, 3}, {0, 0, 5}, {99, 5, 0}} {
		synctest.Test(t, func(t *testing.T) {
			o := output{fail: fmt.Errorf("wrapped: %w", &Refusal{test.items, errors.New("no")})}
			options := o.options()
			lost := 0
			options.OnLost = func(n int, _ error) { lost += n }
			q := start(options)
			push(q, 0, 5)
			if err := q.Flush(t.Context()); err != nil {
				t.Errorf("Flush: got %v, want no error", err)
			}
			checkCounts(t, q, Counts{Sent: test.sent, Refused: test.refused})
			q.Close(t.Context())
			if len(o.seen().tries) != 1 || lost != int(test.refused) {
				t.Errorf("got %d tries and %d lost, want 1 and %d", len(o.seen().tries), lost, test.refused)
			}
		})
	}
}

func TestFlushEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := output{fail: errDown}
		q := start(o.options())
		push(q, 0, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := q.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Flush: got %v, want %v", err, context.DeadlineExceeded)
		}
		o.set(nil)
		q.Close(t.Context())
		checkItems(t, o.seen().items, 0, 1)
	})
}

func TestNil(t *testing.T) {
	var q *Queue[int]
	q.Start()
	q.Push(1, 1)
	q.Close(t.Context())
	if err := q.Flush(t.Context()); err != nil || q.Counts() != (Counts{}) {
		t.Errorf("got %v and %+v, want no error and no counts", err, q.Counts())
	}
}

func TestNeverStarted(t *testing.T) {
	var o output
	q := New(o.options())
	push(q, 0, 3)
	q.Close(t.Context())
	checkCounts(t, q, Counts{Waiting: 3})
}

func TestAttributeBytes(t *testing.T) {
	small := AttributeBytes([]attribute.KeyValue{attribute.Int("n", 1)})
	for _, test := range []struct {
		value attribute.KeyValue
		want  int
	}{
		{attribute.Bool("b", true), small},
		{attribute.String("s", "four"), small + 4},
		{attribute.StringSlice("l", []string{"a", "bc"}), small + 2*stringBytes + 3},
	} {
		if got := AttributeBytes([]attribute.KeyValue{test.value}); got != test.want {
			t.Errorf("AttributeBytes(%v): got %d, want %d", test.value, got, test.want)
		}
	}
}

// A batch with which the output panics is refused and counted. The next one is sent.
func TestPanicOfTheOutput(t *testing.T) {
	before := sample.Panics()
	var sent []int
	o := Options[int]{MaxBytes: 1000, MaxBatchItems: 1, Send: func(_ context.Context, batch []int) error {
		if batch[0] == 1 {
			panic("for the test")
		}
		sent = append(sent, batch...)
		return nil
	}}
	q := New(o)
	q.Start()
	for i := range 3 {
		q.Push(i, 1)
	}
	q.Close(t.Context())
	if c := q.Counts(); c.Sent != 2 || c.Refused != 1 || c.Waiting != 0 || !slices.Equal(sent, []int{0, 2}) {
		t.Errorf("got %+v, %v; want two items sent and one refused", c, sent)
	}
	if got := sample.Panics() - before; got != 1 {
		t.Errorf("got %d panics, want 1", got)
	}
}
