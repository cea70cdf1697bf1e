package action

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/notice"
)

// mostWaiting bounds the events that wait for one action. The newest ones are left out when there are more.
const mostWaiting = 64

// Runner owns the actions. It is safe for concurrent use.
type Runner struct {
	actions []*running
	cancel  context.CancelFunc
	ending  chan struct{} // closed when no more events come
	close   sync.Once
	done    sync.WaitGroup
}

// running is one action with its queue.
type running struct {
	Config
	act    actor
	queue  chan task
	ending <-chan struct{}

	mu    sync.Mutex
	stats Stats
}

// actor does an action once. The error is one line. again says that another try may go better.
type actor interface {
	act(ctx context.Context, n *notice.Notice) (says string, again bool, err error)
}

type task struct {
	notice *notice.Notice
	done   chan<- Outcome // of a trial; nil for all others
}

// Outcome is what an action did with one event.
type Outcome struct {
	Action string
	OK     bool
	Says   string // one line
	Took   time.Duration
}

// Stats is what became of the events that an action was for.
type Stats struct {
	Action  string
	Done    uint64
	Failed  uint64
	Dropped uint64 // they came while too many others waited, or more often than they may
	Last    error  // of the last that failed
}

// New checks the actions and has them wait for events. version is told to webhooks.
func New(configs []Config, version string) (*Runner, error) {
	if len(configs) > mostActions {
		return nil, fmt.Errorf("there are %d actions: keep to %d", len(configs), mostActions)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Runner{cancel: cancel, ending: make(chan struct{})}
	for i, c := range configs {
		a, err := c.actor(version)
		if err != nil {
			cancel()
			return nil, fmt.Errorf("action %d: %w", i+1, err)
		}
		r.actions = append(r.actions, &running{
			Config: c, act: a, queue: make(chan task, mostWaiting), ending: r.ending, stats: Stats{Action: c.name()},
		})
	}
	for _, a := range r.actions {
		r.done.Go(func() { a.run(ctx) })
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
	return newHook(c.Webhook, version), nil
}

// Post hands an event to the actions that are for it. It never waits.
func (r *Runner) Post(n *notice.Notice) {
	for _, a := range r.actions {
		if a.wants(n) {
			a.put(task{notice: n})
		}
	}
}

// Try does the same, and gives what each action did: what has not ended when ctx does is told as that. No action tries
// twice.
func (r *Runner) Try(ctx context.Context, n *notice.Notice) []Outcome {
	outcomes := []Outcome{}
	var waiting []<-chan Outcome
	for _, a := range r.actions {
		if !a.wants(n) {
			continue
		}
		done := make(chan Outcome, 1)
		if !a.put(task{n, done}) {
			done <- Outcome{a.stats.Action, false, "too many events wait for it", 0}
		}
		waiting = append(waiting, done)
		outcomes = append(outcomes, Outcome{a.stats.Action, false, "it has not ended yet", 0})
	}
	for i, done := range waiting {
		select {
		case outcomes[i] = <-done:
		case <-ctx.Done():
		}
	}
	return outcomes
}

// Stats is what became of the events so far, by action.
func (r *Runner) Stats() (all []Stats) {
	for _, a := range r.actions {
		a.mu.Lock()
		all = append(all, a.stats)
		a.mu.Unlock()
	}
	return all
}

// Close does what waits, each once, until ctx ends, and waits for all that was started. No event may be posted any more.
func (r *Runner) Close(ctx context.Context) {
	r.close.Do(func() { close(r.ending) })
	stop := context.AfterFunc(ctx, r.cancel)
	defer stop()
	r.done.Wait()
	r.cancel()
}

// put says whether there was room.
func (a *running) put(t task) bool {
	select {
	case a.queue <- t:
		return true
	default:
		a.count(func(s *Stats) { s.Dropped++ })
		return false
	}
}

func (a *running) count(change func(*Stats)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(&a.stats)
}

// run is an action's goroutine.
func (a *running) run(ctx context.Context) {
	for {
		select {
		case t := <-a.queue:
			a.do(ctx, t)
		case <-a.ending:
			select {
			case t := <-a.queue:
				a.do(ctx, t)
			default:
				return
			}
		}
	}
}

// mostTries bounds how often one event is tried.
const mostTries = 6

func (a *running) do(ctx context.Context, t task) {
	began := time.Now()
	var says string
	var err error
	for try := range mostTries {
		var again bool
		says, again, err = a.act.act(ctx, t.notice)
		if err == nil || !again || t.done != nil || ctx.Err() != nil || try == mostTries-1 || !a.pause(ctx, try) {
			break
		}
	}
	a.count(func(s *Stats) {
		switch {
		case err == nil:
			s.Done++
		case errors.Is(err, errTooOften):
			s.Dropped++
		default:
			s.Failed++
			s.Last = err
		}
	})
	if t.done != nil {
		o := Outcome{a.stats.Action, err == nil, says, time.Since(began)}
		if err != nil {
			o.Says = err.Error()
		}
		t.done <- o
	}
}
