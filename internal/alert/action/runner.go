package action

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
)

// maxQueued bounds the events that wait for one action. Those of the machine go first: see trust.Queue.
const maxQueued = 64

// Runner runs the actions. It is safe for concurrent use.
type Runner struct {
	workers []*worker
	cancel  context.CancelFunc
	closing context.Context // done when no more events come
	close   context.CancelFunc
	done    sync.WaitGroup
}

// worker is one action with its queue.
type worker struct {
	Config
	actor   actor
	wake    chan struct{} // has a place for one: something was queued
	closing context.Context

	mu    sync.Mutex // guards the fields below
	queue trust.Queue[task]
	stats Stats
}

// actor runs an action once and returns one line about it. An error that is not a backoff.PermanentError is retried.
type actor interface {
	act(ctx context.Context, e *emit.Event) (message string, err error)
}

type task struct {
	event *emit.Event
	done  chan<- Outcome // of a test; else nil
}

// Outcome is the result of one action for one event.
type Outcome struct {
	Action  string
	OK      bool
	Message string // one line
	Took    time.Duration
}

// Stats counts the events of one action.
type Stats struct {
	Action    string
	Succeeded uint64
	Failed    uint64
	Dropped   uint64 // because the queue was full or the rate limit was reached
	LastError error  // of the last failure
}

// New checks the actions and starts them. version is part of the webhooks' user agent.
func New(configs []Config, version string) (*Runner, error) {
	if len(configs) > maxActions {
		return nil, fmt.Errorf("there are %d actions: keep to %d", len(configs), maxActions)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Runner{cancel: cancel}
	r.closing, r.close = context.WithCancel(ctx)
	for i, c := range configs {
		a, err := c.actor(version)
		if err != nil {
			cancel()
			return nil, fmt.Errorf("action %d: %w", i+1, err)
		}
		r.workers = append(r.workers, &worker{
			Config: c, actor: a, wake: make(chan struct{}, 1), closing: r.closing, stats: Stats{Action: c.name()},
			queue: trust.Queue[task]{Size: maxQueued},
		})
	}
	for _, w := range r.workers {
		r.done.Go(func() { w.run(ctx) })
	}
	return r, nil
}

func (c *Config) actor(version string) (actor, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if c.Exec != nil {
		return newProgram(c.Exec)
	}
	return newWebhook(c.Webhook, version), nil
}

// Post queues an event for each action that handles it. It never waits.
func (r *Runner) Post(e *emit.Event) {
	for _, w := range r.workers {
		if w.matches(e) {
			w.put(task{event: e})
		}
	}
}

// Try queues an event and returns the outcome of each action. An action that has not ended when ctx is done is reported
// as such. There are no retries.
func (r *Runner) Try(ctx context.Context, e *emit.Event) []Outcome {
	outcomes := []Outcome{}
	var pending []<-chan Outcome
	for _, w := range r.workers {
		if !w.matches(e) {
			continue
		}
		done := make(chan Outcome, 1)
		w.put(task{e, done})
		pending = append(pending, done)
		outcomes = append(outcomes, Outcome{w.stats.Action, false, "it is still running", 0})
	}
	for i, done := range pending {
		select {
		case outcomes[i] = <-done:
		case <-ctx.Done():
		}
	}
	return outcomes
}

// Stats returns the counts of all actions.
func (r *Runner) Stats() (all []Stats) {
	for _, w := range r.workers {
		w.mu.Lock()
		all = append(all, w.stats)
		w.mu.Unlock()
	}
	return all
}

// Close runs each queued event once, until ctx is done, and waits for everything that was started. Post must not be
// called any more.
func (r *Runner) Close(ctx context.Context) {
	r.close()
	stop := context.AfterFunc(ctx, r.cancel)
	defer stop()
	r.done.Wait()
	r.cancel()
}

// put queues a task, and counts those as dropped that have no place.
func (w *worker) put(t task) {
	w.mu.Lock()
	lost := w.queue.Add(t.event.Lane(), 1, t)
	w.stats.Dropped += uint64(len(lost))
	w.mu.Unlock()
	for _, t := range lost {
		if t.done != nil {
			t.done <- Outcome{w.stats.Action, false, "not run: too many events wait for it", 0}
		}
	}
	select {
	case w.wake <- struct{}{}:
	default: // it will look already
	}
}

// next returns the next task, and false when all are done and no more come.
func (w *worker) next() (t task, ok bool) {
	for {
		closing := w.closing.Err() != nil
		w.mu.Lock()
		t, ok = w.queue.Pop()
		w.mu.Unlock()
		if ok || closing {
			return t, ok
		}
		select {
		case <-w.wake:
		case <-w.closing.Done():
		}
	}
}

func (w *worker) count(change func(*Stats)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.stats)
}

func (w *worker) run(ctx context.Context) {
	for t, ok := w.next(); ok; t, ok = w.next() {
		w.do(ctx, t)
	}
}

// isAwaited reports whether an event of the machine waits, before which no other is tried again.
func (w *worker) isAwaited() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queue.HasOwn()
}

const maxTries = 6

func (w *worker) do(ctx context.Context, t task) {
	began := time.Now()
	tries := uint(maxTries)
	if t.done != nil {
		tries = 1
	}
	var message string
	var err error
	// The pauses are 0.5 to 1 s, doubled after each attempt: six attempts wait for 15 to 31 s in all.
	pauses := &backoff.ExponentialBackOff{
		InitialInterval: 750 * time.Millisecond, RandomizationFactor: 1. / 3, Multiplier: 2, MaxInterval: time.Minute,
	}
	// Only the pauses end with closing: an attempt that has started goes on. The error of the last attempt is reported.
	_, _ = backoff.Retry(w.closing, func() (struct{}, error) {
		if failed := sample.Protect(func() { message, err = w.actor.act(ctx, t.event) }); failed != nil {
			err = backoff.Permanent(failed)
		}
		if err != nil && t.event.Lane() != "" && w.isAwaited() {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pauses), backoff.WithMaxTries(tries), backoff.WithMaxElapsedTime(0))
	var permanent *backoff.PermanentError
	if errors.As(err, &permanent) {
		err = permanent.Unwrap()
	}
	w.count(func(s *Stats) {
		switch {
		case err == nil:
			s.Succeeded++
		case errors.Is(err, errRateLimited):
			s.Dropped++
		default:
			s.Failed++
			s.LastError = err
		}
	})
	if t.done != nil {
		if err != nil {
			message = err.Error()
		}
		t.done <- Outcome{w.stats.Action, err == nil, message, time.Since(began)}
	}
}
