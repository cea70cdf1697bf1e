package perfetto

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/ledger/chain"
	"github.com/stallspan/stallspan/internal/sample"
)

const (
	maxThreads = 1024                   // with a track
	firstShort = 100 * time.Microsecond // the first detail of states
	maxMixed   = 10 * time.Millisecond  // of short states that are drawn together, at least
	maxRenamed = 8                      // of one thread or process
	keepChains = time.Second            // of the timeline
)

// threads draws what the threads of jobs did.
type threads struct {
	tracks    *tracks
	budget    budget
	timeline  *chain.Timeline // nil without evidence of the scheduler
	of        map[threadKey]*threadTrack
	without   map[threadKey]bool // threads without a track
	processes map[int]*process
	dropped   int                    // states without room
	spent     map[string]chain.Spent // by job, at
	at        time.Duration
	lost      uint64
}

// threadKey is a thread; the kernel uses a TID again.
type threadKey struct {
	tid  int
	born time.Duration
}

// threadTrack is the track of a thread, and the short states that are not drawn yet.
type threadTrack struct {
	id      uint64
	comm    string // the thread's name
	renamed int
	short   mixed
	name    string // of short, while it is one state
	single  bool
}

// process is the track of a process. It holds nothing: it names the threads' process.
type process struct {
	id    uint64
	name  string
	named int
}

// mixed is a stretch of several states.
type mixed struct {
	from, to time.Duration
	parts    [chain.States]time.Duration
}

func (t *threads) init(to *tracks) {
	t.tracks = to
	t.budget = newBudget(maxStates, firstShort)
	t.of, t.without, t.processes = map[threadKey]*threadTrack{}, map[threadKey]bool{}, map[int]*process{}
}

func (t *threads) learn(s *sample.Schedule, to *counters) {
	if t.timeline == nil {
		t.timeline = chain.NewTimeline()
		t.timeline.Watch(t.stretch)
	}
	t.lost += s.Lost
	t.timeline.Learn(s)
	t.timeline.Forget(t.timeline.Until() - keepChains)
	if now := t.timeline.Until(); to.due(t.at, now) {
		t.count(now, to)
	}
}

// count draws how many threads were in each state, as means since the last call.
func (t *threads) count(now time.Duration, to *counters) {
	spent := t.timeline.Spent()
	for _, job := range slices.Sorted(maps.Keys(t.spent)) {
		for state := chain.Running; int(state) < chain.States; state++ {
			mean := 0.0 // of a job that has ended
			if sum, on := spent[job]; on {
				mean = max(0, (sum[state]-t.spent[job][state]).Seconds()/(now-t.at).Seconds())
			}
			to.set(jobPanel(job), "threads "+state.String(), "", t.at, mean)
		}
	}
	t.spent, t.at = spent, now
}

// end draws the states that have not ended.
func (t *threads) end() {
	if t.timeline == nil {
		return
	}
	for _, job := range slices.Sorted(maps.Keys(t.timeline.Spent())) {
		t.timeline.Leave(job)
	}
	tracks := slices.SortedFunc(maps.Values(t.of), func(a, b *threadTrack) int { return cmp.Compare(a.id, b.id) })
	for _, th := range tracks {
		t.flush(th)
	}
}

// stretch draws a state of a thread.
func (t *threads) stretch(s *chain.Stretch) {
	th := t.track(s)
	if th == nil {
		return
	}
	if s.State == chain.Unseen {
		t.flush(th)
		return
	}
	name := s.State.String()
	if s.Why != "" {
		name += ": " + s.Why
	}
	if !s.Summed && s.To-s.From >= t.budget.detail {
		t.flush(th)
		t.draw(th, s.From, s.To, name, nil)
		return
	}
	m := &th.short
	if m.to-m.from >= max(maxMixed, coarser*t.budget.detail) {
		t.flush(th)
	}
	if m.from == m.to {
		m.from, th.name, th.single = s.From, name, true
	}
	th.single = th.single && th.name == name
	m.to = s.To
	m.parts[s.State] += s.To - s.From
}

// track returns the track of a thread, or nil if there are too many.
func (t *threads) track(s *chain.Stretch) *threadTrack {
	key := threadKey{s.TID, s.Born}
	if th := t.of[key]; th != nil {
		t.process(s)
		if th.comm != s.Name && th.renamed < maxRenamed { // as a thread does right after its start
			th.comm = s.Name
			th.renamed++
			t.tracks.thread(th.id, s.PID, s.TID, s.Name)
		}
		return th
	}
	if s.State == chain.Unseen {
		return nil // it may never be seen
	}
	if len(t.of) >= maxThreads {
		if len(t.without) < maxThreads {
			t.without[key] = true
		}
		return nil
	}
	t.process(s)
	th := &threadTrack{id: t.tracks.number(), comm: s.Name}
	t.tracks.thread(th.id, s.PID, s.TID, s.Name)
	t.of[key] = th
	return th
}

// process describes the process of a thread with a track, by the newest name of its first thread.
func (t *threads) process(s *chain.Stretch) {
	name := cmp.Or(s.Process, s.Job)
	p := t.processes[s.PID]
	if p == nil {
		p = &process{id: t.tracks.number()}
		t.processes[s.PID] = p
	}
	if p.name != name && p.named < maxRenamed {
		p.name = name
		p.named++
		t.tracks.process(p.id, s.PID, name)
	}
}

// flush draws the short states of a thread.
func (t *threads) flush(th *threadTrack) {
	m := th.short
	th.short = mixed{}
	switch {
	case m.from == m.to:
	case th.single:
		t.draw(th, m.from, m.to, th.name, nil)
	default:
		t.draw(th, m.from, m.to, m.name(), m.notes())
	}
}

func (t *threads) draw(th *threadTrack, from, to time.Duration, name string, notes []note) {
	if !t.budget.spend(1, from) {
		t.dropped++
		return
	}
	t.tracks.out.start(th.id, from, name, "thread", notes)
	t.tracks.out.end(th.id, to)
}

// name says what most of the time was.
func (m *mixed) name() string {
	for state, part := range m.parts {
		if 2*part > m.to-m.from {
			return "mostly " + chain.State(state).String()
		}
	}
	return "several states"
}

func (m *mixed) notes() (all []note) {
	for state, part := range m.parts {
		if part > 0 {
			all = append(all, note{chain.State(state).String() + " ms", part.Seconds() * 1e3})
		}
	}
	return all
}

// leftOut says what is not drawn.
func (t *threads) leftOut(wall func(time.Duration) time.Time) (all []string) {
	if t.budget.detail > 0 {
		all = append(all, fmt.Sprintf("states of threads are drawn together from %s on where they are short, at last those "+
			"under %s", clockTimeOf(wall(t.budget.since)), explain.Duration(t.budget.detail.Seconds())))
	}
	if n := len(t.without); n > 0 {
		text := sentence(n, "thread", "has no track", "have no track")
		if n == maxThreads {
			text = "at least " + text
		}
		all = append(all, text)
	}
	if t.dropped > 0 {
		all = append(all, sentence(t.dropped, "state", "of a thread is not drawn", "of threads are not drawn"))
	}
	if t.lost > 0 {
		all = append(all, fmt.Sprintf("%d of the scheduler's events were lost", t.lost))
	}
	return all
}
