package window

import (
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// Scope says whose time a ledger splits: one job's on one GPU.
type Scope struct {
	Job      string // "" for the whole machine
	Pressure string // the sample.Pressure scope in which the job waits
	Own      bool   // that scope holds this job and nothing else
	GPU      string // hw.id; "" where no GPU is in sight

	// Remote says that the job has had files open that lie on no disk of this machine. It may turn true later.
	Remote bool
}

// ID names the scope's columns in the history.
func (s Scope) ID() string { return LedgerID(s.Job, s.GPU) }

// same says that it is the same job's time, whatever has been learnt of the job since.
func (s Scope) same(as Scope) bool {
	s.Remote = as.Remote
	return s == as
}

// LedgerID names the ledger of one job on one GPU.
func LedgerID(job, gpu string) string { return job + "\x00" + gpu }

// cellTime is the longest stretch that is split in one piece. Within a cell only sums are seen, so a long one would
// mistake waiting and idleness that took turns for one that coincided.
const cellTime = 100 * time.Millisecond

// gateTime is for how long a job's last I/O explains pressure that it shares with others: a single read that takes
// long is counted only when it returns.
const gateTime = time.Second

// stillWriting is which share of pressure says that what was written last is still being flushed.
const stillWriting = 0.1

// Ledger keeps one running split for each scope. Because the splits are cumulative like any counter, a window's
// ledger is a difference between two moments, however long the window is. It is not safe for concurrent use.
type Ledger struct {
	books  []*book
	told   sample.Sample // the totals that were told last
	newest time.Duration // when the newest row was told
}

// book is one scope's running split.
type book struct {
	scope  Scope
	at     time.Duration
	begun  bool
	levels levels
	lastIO time.Duration
	spin   spin

	disk    string // from which the job read last; "" for none of this machine
	writing bool
	total   sample.Ledger
}

// Keep makes the ledger hold exactly the given scopes. One that stays keeps its totals.
func (l *Ledger) Keep(scopes []Scope) {
	books := make([]*book, 0, len(scopes))
	for _, s := range scopes {
		i := slices.IndexFunc(l.books, func(b *book) bool { return b.scope.same(s) })
		if i >= 0 {
			l.books[i].scope = s
			books = append(books, l.books[i])
			continue
		}
		books = append(books, &book{scope: s, total: sample.Ledger{ID: s.ID(), HasGain: s.Job != ""}})
	}
	l.books = books
}

// Advance splits the time up to the newest moment that every source has reached. tell gets the totals at the end of each
// cell; it must not keep them. Cells also end at the given edges, in the order of their time: done is told how many of
// them were reached.
func (l *Ledger) Advance(h *history.History, edges []history.Point, tell func(*sample.Sample)) (done int) {
	to, ok := l.reached(h)
	if !ok {
		return 0
	}
	for ; done < len(edges) && edges[done].At <= to; done++ {
		if l.upTo(h, edges[done], tell) {
			l.tell(tell) // a column is known from its first row on
		}
		h.Observe(edges[done].Edge, &l.told) // and no row otherwise: many edges would push older rows out
	}
	l.upTo(h, history.Point{At: to}, tell)
	if len(l.told.Ledgers) > 0 {
		l.tell(tell)
	}
	return done
}

// tell tells of the totals. Rows that are no later than the newest one are not taken by the history.
func (l *Ledger) tell(tell func(*sample.Sample)) {
	l.newest = max(l.newest, l.told.At.Mono)
	tell(&l.told)
}

// upTo splits the time up to p in cells and tells of all but the last. There are many at a time where a GPU's driver is
// asked once a second. It says whether a book began at p.
func (l *Ledger) upTo(h *history.History, p history.Point, tell func(*sample.Sample)) (began bool) {
	if after := l.newest + 1; l.newest > 0 && after < p.At && l.fresh() {
		l.step(h, history.Point{At: after}) // as early as rows can be added
		l.tell(tell)
	}
	next := p.At
	for _, b := range l.books {
		if b.begun && p.At-b.at < time.Minute {
			next = min(next, b.at+cellTime)
		}
	}
	for ; next < p.At-cellTime/2; next += cellTime {
		l.step(h, history.Point{At: next})
		l.tell(tell)
	}
	began = l.fresh()
	l.step(h, p)
	return began
}

// fresh says that a book has not begun.
func (l *Ledger) fresh() bool {
	return slices.ContainsFunc(l.books, func(b *book) bool { return !b.begun })
}

// step splits the time up to p in one piece and sets what is to be told.
func (l *Ledger) step(h *history.History, p history.Point) {
	l.told.Reset()
	l.told.At.Mono = p.At
	for _, b := range l.books {
		if !b.begun && p.At <= l.newest {
			continue // a GPU that has just come tells of a time of which there are rows without it: none could be added
		}
		b.advance(h, p)
		l.told.Ledgers = append(l.told.Ledgers, b.total)
	}
}

// Peek writes into out what the totals are at an edge, without keeping it.
func (l *Ledger) Peek(h *history.History, at time.Duration, edge *history.Edge, out *sample.Sample) {
	out.Reset()
	out.At.Mono = at
	known := l.known(h)
	for _, b := range l.books {
		if !b.begun {
			continue
		}
		peek := *b
		peek.upTo(h, history.Point{At: at, Edge: edge}, known)
		out.Ledgers = append(out.Ledgers, peek.total)
	}
}

// needed are the sources that the ledger needs, the GPUs last.
var needed = [...]history.Series{
	history.IOSome, history.HostCPUTime, history.JobCPUTime, history.DisksBytes, history.GPUBusyTime,
}

// known is the newest moment for which every source but the GPUs has a reading.
func (l *Ledger) known(h *history.History) time.Duration {
	to, _ := together(h, needed[:len(needed)-1])
	return to
}

// reached is the newest moment for which every source that the ledger needs has a reading.
func (l *Ledger) reached(h *history.History) (time.Duration, bool) {
	return together(h, needed[:])
}

// together is the newest moment for which all of these have a reading, but for those that lag too far behind to be waited
// for, as of jobs there may be no more. It is false where there is no reading at all.
func together(h *history.History, all []history.Series) (time.Duration, bool) {
	var newest time.Duration
	for _, s := range all {
		last, _ := h.Last(s)
		newest = max(newest, last)
	}
	to := newest
	for _, s := range all {
		if last, ok := h.Last(s); ok && newest-last <= history.Lag {
			to = min(to, last)
		}
	}
	return to, newest > 0
}

func (b *book) advance(h *history.History, p history.Point) {
	if !b.begun {
		b.levels, b.at, b.begun = b.read(h, p), p.At, true
		return
	}
	if p.At > b.at {
		b.step(h, p)
	}
}

// upTo splits the time up to p, for a look ahead: in cells up to what is known of every source but the GPUs, and the rest
// in one piece, for between two readings there is nothing finer to see.
func (b *book) upTo(h *history.History, p history.Point, known time.Duration) {
	for p.At-b.at > cellTime*3/2 && p.At-b.at < time.Minute && b.at+cellTime <= known {
		b.step(h, history.Point{At: b.at + cellTime})
	}
	if p.At > b.at {
		b.step(h, p)
	}
}

// step splits the time from the last step to p.
func (b *book) step(h *history.History, p history.Point) {
	now := b.read(h, p)
	dt := (p.At - b.at).Seconds()
	if dt <= 0 {
		return
	}
	c := b.levels.until(now, dt, b.scope)
	if fetched := now.fetched - b.levels.fetched; fetched > 0 {
		c.queue, c.onDisk, b.disk = ownQueue(h, history.Point{At: b.at}, p, fetched)
	} else if c.shared && b.disk != "" {
		c.onDisk, c.between = weighted(h, b.disk, history.Point{At: b.at}, p), true
	}
	if b.scope.Job != "" && !b.scope.Own {
		if b.levels.ownIO(now, b.scope.Remote) {
			b.lastIO = p.At
		}
		c.mine = b.lastIO > 0 && p.At-b.lastIO <= gateTime
	}
	b.writing = b.levels.wrote(now) || b.writing && c.some > stillWriting*dt
	c.writing = b.writing
	c = c.each()
	b.spin.add(dt, c.leading, c.busy, c.inTurn())
	if c.spins = b.spin.spins(); c.spins {
		c.spun = b.spin.spun(c.runnable(), c.busy)
	}
	of := c.split()
	b.total.Busy += seconds(of.busy)
	b.total.Storage += seconds(of.storage)
	b.total.CPU += seconds(of.cpu)
	b.total.Gain += seconds(of.gain)
	b.levels, b.at = now, p.At
}

// seconds rounds to the nanosecond.
func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
