package page

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/ledger/chain"
	"github.com/stallspan/stallspan/internal/recording"
)

// Bounds of what is kept of threads.
const (
	maxThreadRows = 2 * maxPoints   // of a job
	maxThreadJobs = 64              // of these the first maxJobs are shown
	keepChains    = 2 * time.Second // of the timeline
	crowd         = 4               // asleep is drawn if it is at most so many times the rest
)

// Threads counts what the threads of jobs do, from the entries of a recording. The history has no columns for that,
// because few want the picture. The zero value is ready. It is safe for concurrent use.
type Threads struct {
	mu       sync.Mutex
	timeline *chain.Timeline // nil without evidence of the scheduler
	jobs     map[string]*jobThreads
	order    []string      // of the jobs, as they came
	step     time.Duration // between two rows
	last     time.Duration // the newest row
}

// jobThreads are rows of running totals. Any row may be left out.
type jobThreads struct {
	rows []threadRow
	zero chain.Spent // of a job that was followed before
	now  chain.Spent
}

type threadRow struct {
	at    time.Duration
	spent chain.Spent
}

// Write adds an entry. It is of monitor.Journal.
func (t *Threads) Write(e *recording.Entry) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case e.Sample != nil && e.Sample.Schedule != nil:
		if t.timeline == nil {
			t.timeline, t.jobs = chain.NewTimeline(), map[string]*jobThreads{}
		}
		t.timeline.Learn(e.Sample.Schedule)
		t.row()
		t.timeline.Forget(t.timeline.Until() - keepChains)
	case e.Mark != nil && e.Mark.Op == recording.Leave && t.timeline != nil:
		t.timeline.Leave(e.Mark.ID)
	}
	return nil
}

// row adds a row to each job.
func (t *Threads) row() {
	at := t.timeline.Until()
	if at < t.last+t.step || at <= t.last {
		return
	}
	t.last = at
	spent := t.timeline.Spent()
	for _, id := range slices.Sorted(maps.Keys(spent)) {
		j := t.jobs[id]
		if j == nil && len(t.jobs) >= maxThreadJobs {
			continue
		}
		if j == nil {
			j = &jobThreads{}
			t.jobs[id] = j
			t.order = append(t.order, id)
		}
		if j.add(at, spent[id]); len(j.rows) >= maxThreadRows {
			t.thin()
		}
	}
}

// add adds a row. A job whose totals shrink has begun again.
func (j *jobThreads) add(at time.Duration, spent chain.Spent) {
	if total(spent) < total(j.now) {
		j.zero = plusSpent(j.zero, j.now)
	}
	j.now = spent
	j.rows = append(j.rows, threadRow{at, plusSpent(j.zero, spent)})
}

func total(s chain.Spent) (sum time.Duration) {
	for _, part := range s {
		sum += part
	}
	return sum
}

func plusSpent(a, b chain.Spent) chain.Spent {
	for i := range b {
		a[i] += b[i]
	}
	return a
}

// thin leaves out every second row of all jobs.
func (t *Threads) thin() {
	first, last := time.Duration(math.MaxInt64), t.last
	for _, j := range t.jobs {
		kept := j.rows[:0]
		for i := range j.rows {
			if i%2 == 0 {
				kept = append(kept, j.rows[i])
			}
		}
		j.rows = kept
		first = min(first, kept[0].at)
	}
	t.step = max(2*t.step, (last-first)/maxPoints)
}

// AddTo adds a panel for each job to the curves of a page with that origin, below the ledgers.
func (t *Threads) AddTo(c *Curves, origin time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(c.Panels) == 0 {
		return
	}
	var panels []Panel
	for _, id := range t.order[:min(len(t.order), maxJobs)] {
		title := "Threads by state"
		if id != "" {
			title += ": " + id
		}
		if p, ok := t.jobs[id].panel(title, c, origin); ok {
			panels = append(panels, p)
		}
	}
	after := slices.IndexFunc(c.Panels, func(p Panel) bool { return p.Lines[0].Part == "" })
	if after < 0 {
		after = len(c.Panels)
	}
	c.Panels = slices.Insert(c.Panels, after, panels...)
}

// parts are the colours of the states, which are those of the ledger.
var parts = [chain.States]string{
	chain.Running: "busy", chain.Ready: "cpu", chain.OnDisk: "storage", chain.Sleeping: "other",
}

// panel draws the mean numbers of threads, in the intervals of the other curves. It reports false if no time is known.
func (j *jobThreads) panel(title string, c *Curves, origin time.Duration) (p Panel, ok bool) {
	p = Panel{Title: title, Stacked: true}
	var lines [chain.States]Values
	step := time.Duration(math.Round(c.Step * 1e9))
	start := origin + time.Duration(math.Round(c.Start*1e9))
	points := len(c.Panels[0].Lines[0].Values)
	for state := range lines {
		lines[state] = make(Values, points)
	}
	for i := range points {
		from, known1 := j.at(start + time.Duration(i)*step)
		to, known2 := j.at(start + time.Duration(i+1)*step)
		ok = ok || known1 && known2
		for state := range lines {
			lines[state][i] = max(0, to[state]-from[state]) / step.Seconds()
			if !known1 || !known2 {
				lines[state][i] = math.NaN()
			}
		}
	}
	awake, asleep := 0.0, lines[chain.Sleeping].top()
	for state := chain.Running; state < chain.Sleeping; state++ {
		awake = max(awake, lines[state].top())
	}
	shown := chain.Sleeping
	if asleep > crowd*awake {
		shown = chain.OnDisk
		p.Note = fmt.Sprintf("Threads that sleep are not shown: up to %.0f at a time.", math.Round(asleep))
	}
	for state := chain.Running; state <= shown; state++ {
		p.Lines = append(p.Lines, Line{Name: state.String(), Part: parts[state], Values: lines[state]})
	}
	return p, ok
}

// at interpolates the totals, in seconds.
func (j *jobThreads) at(when time.Duration) (s [chain.States]float64, ok bool) {
	i := sort.Search(len(j.rows), func(i int) bool { return j.rows[i].at >= when })
	if i == len(j.rows) {
		return s, false
	}
	b := &j.rows[i]
	if i == 0 && b.at > when {
		return s, false
	}
	a, share := b, 0.0
	if i > 0 {
		a = &j.rows[i-1]
		share = (b.at - when).Seconds() / (b.at - a.at).Seconds()
	}
	for state := range s {
		s[state] = b.spent[state].Seconds() - share*(b.spent[state]-a.spent[state]).Seconds()
	}
	return s, true
}

// top is the highest known value.
func (v Values) top() (highest float64) {
	for _, x := range v {
		if x > highest { // not NaN
			highest = x
		}
	}
	return highest
}
