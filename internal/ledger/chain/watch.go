package chain

import (
	"cmp"
	"slices"
	"time"
)

// State is what a thread does for a while, as a picture shows it.
type State uint8

// The states.
const (
	Unseen   State = iota // events were lost, or it was not followed yet
	Running               // on a CPU
	Ready                 // without a CPU
	OnDisk                // waits for storage
	Sleeping              // waits for anything else
	States   int   = iota
)

func (s State) String() string {
	return [States]string{"unknown", "running", "ready", "waiting for storage", "asleep"}[s]
}

// stateOf maps the kind of a segment to a State.
var stateOf = [...]State{
	running: Running, taken: Running, ready: Ready, readyAfterStorage: Ready, storage: OnDisk, asleep: Sleeping,
	unknown: Unseen,
}

// Stretch is the time of one thread in one state.
type Stretch struct {
	TID, PID int
	Name     string // of the thread
	Process  string // name of its process's first thread, if that is followed; else ""
	Job      string
	Born     time.Duration // of the thread; distinguishes threads with the same TID
	From, To time.Duration
	State    State
	Why      string // of Sleeping: what for, where that is known
	Summed   bool   // one of several states whose order is not known
}

// Watch calls f for each stretch of each thread, when it ends. Stretches of one thread are in order and have no gap. f
// must not keep the Stretch. nil for nothing.
func (t *Timeline) Watch(f func(*Stretch)) { t.watch = f }

// Leave ends the threads of a job that is not followed any more, when the newest events were.
func (t *Timeline) Leave(job string) {
	var threads []*thread
	for _, th := range t.threads {
		if th.died == 0 && th.job.id == job {
			threads = append(threads, th)
		}
	}
	slices.SortFunc(threads, func(a, b *thread) int { return cmp.Compare(a.tid, b.tid) })
	for _, th := range threads {
		th.close(t, t.until, segment{kind: th.openKind(), reason: th.pause.reason})
		th.died = t.until
	}
}

// Spent is the time that the threads of a job have spent in each state.
type Spent [States]time.Duration

// Spent returns the time that threads have spent, by job, for jobs that have threads. What a thread does now counts as
// what it seems to be: the next event may show a part of it to be something else.
func (t *Timeline) Spent() map[string]Spent {
	sums := make(map[string]Spent, len(t.jobs))
	for id, j := range t.jobs {
		sums[id] = j.spent
	}
	for _, th := range t.threads {
		if th.died == 0 && t.until > th.since {
			sum := sums[th.job.id]
			sum[stateOf[th.openKind()]] += t.until - th.since
			sums[th.job.id] = sum
		}
	}
	return sums
}

// pass counts the open state and passes it on. It ends at a moment, as that segment.
func (th *thread) pass(t *Timeline, at time.Duration, s *segment) {
	th.job.spent[stateOf[s.kind]] += at - th.since
	if t.watch == nil {
		return
	}
	out := Stretch{
		TID: th.tid, PID: th.pid, Name: th.name, Job: th.job.id, Born: th.born, From: th.since, To: at,
		State: stateOf[s.kind], Summed: th.summing,
	}
	if first := t.threads[th.pid]; first != nil {
		out.Process = first.name
	}
	if out.State == Sleeping {
		out.Why = t.why(s)
	}
	t.watch(&out)
}

// why is what a thread sleeps for.
func (t *Timeline) why(s *segment) string {
	if s.waker == 0 {
		return t.reasons.get(s.reason).Name
	}
	if by := t.threads[int(s.waker)]; by != nil && by.name != "" {
		return "woken by " + by.name
	}
	return "woken by a thread of the job"
}
