package history

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// A candidate is a process that is not announced (sample.Sample.Candidates). Its readings are kept apart, in less
// memory than columns take: 56 KiB each. When it becomes a job, columns are made for it, and the rows that exist are
// filled from the past. So a column may be older than its device is known.

// Rows of a candidate that are kept: a minute of readings every 100 ms, and one a second for ten minutes.
const (
	maxRecent   = 600
	maxOlder    = 600
	dropRecent  = 60 // at a time
	olderPeriod = time.Second
)

// maxBefore is how long before the first row a column may have been 0. Beyond it, the time before is not known.
const maxBefore = 10 * time.Second

// pastBytes is the memory of one candidate's readings.
const pastBytes = (maxRecent + maxOlder) * (1 + jobColumns) * 8

// jobColumns is the number of columns of kindJob.
const jobColumns = 5

// past are the readings of a candidate, oldest first.
type past struct {
	began  time.Duration // when all values were 0
	older  []pastRow
	recent []pastRow
	seen   bool // in the reading that is appended now
}

type pastRow struct {
	at     time.Duration
	values [jobColumns]float64
}

func (p *past) add(at time.Duration, values [maxColumns]float64) {
	if len(p.recent) == maxRecent {
		for i := range p.recent[:dropRecent] {
			p.age(&p.recent[i])
		}
		p.recent = append(p.recent[:0], p.recent[dropRecent:]...)
	}
	p.recent = append(p.recent, pastRow{at, [jobColumns]float64(values[:jobColumns])})
}

// age keeps one row a second of those that are dropped.
func (p *past) age(row *pastRow) {
	if n := len(p.older); n > 0 && row.at-p.older[n-1].at < olderPeriod {
		return
	}
	if len(p.older) == maxOlder {
		p.older = append(p.older[:0], p.older[dropRecent:]...)
	}
	p.older = append(p.older, *row)
}

// step is the value of a column at a time.
type step struct {
	at    time.Duration
	value float64
}

// column returns the values of a column.
func (p *past) column(column int) (steps []step) {
	for _, rows := range [...][]pastRow{p.older, p.recent} {
		for i := range rows {
			steps = append(steps, step{rows[i].at, rows[i].values[column]})
		}
	}
	return steps
}

// learnCandidates keeps the readings of candidates. Those that are no longer read are dropped.
func (h *History) learnCandidates(s *sample.Sample) {
	for i := range s.Candidates {
		j := &s.Candidates[i]
		p := h.pasts[j.ID]
		if p == nil {
			if float64(h.bytes+pastBytes) > fullShare*float64(h.config.MaxBytes) {
				continue
			}
			p = &past{began: j.Began}
			h.pasts[j.ID] = p
			h.bytes += pastBytes
		}
		p.seen = true
		p.add(s.At.Mono, jobValues(j))
	}
	for id, p := range h.pasts {
		if !p.seen {
			h.dropPast(id)
		}
		p.seen = false
	}
}

func (h *History) dropPast(id string) {
	delete(h.pasts, id)
	h.bytes -= pastBytes
}

// recallJobs makes the columns of candidates that have become jobs, with their past.
func (h *History) recallJobs(s *sample.Sample) {
	a := &h.axes[processAxis]
	for i := range s.Jobs {
		id := s.Jobs[i].ID
		p := h.pasts[id]
		if p == nil {
			continue
		}
		h.dropPast(id)
		if key := (groupKey{kindJob, id}); a.groups[key] == nil { // else it was a job before
			h.recall(a, key, p.began, p.column)
		}
	}
}

// recall makes the columns of a device and fills them with its past. began is when all of them were 0; values returns
// those of a column.
func (h *History) recall(a *axis, key groupKey, began time.Duration, values func(column int) []step) {
	g := h.group(a, key, 0, a.last)
	if g == nil {
		return
	}
	g.recalled = true
	for i := range g.columns {
		g.columns[i].recall(a, began, values(i))
	}
}

// recall fills the rows that exist with the past of a column.
func (c *column) recall(a *axis, began time.Duration, past []step) {
	if len(past) == 0 {
		return
	}
	first, last := past[0], past[len(past)-1]
	c.since, c.zero, c.first = first.at, first.at, first.value
	if before := first.at - began; before > 0 && before <= maxBefore {
		c.zero = began
	}
	c.begun, c.raw, c.value = true, last.value, last.value
	for i := range c.tiers {
		t, r := &a.tiers[i], &c.tiers[i]
		from := t.begin(first.at)
		r.from = from
		k := 0
		for n := max(from, t.next-r.size); n < t.next; n++ {
			at := t.at(n)
			for k < len(past)-2 && past[k+1].at < at {
				k++
			}
			r.put(t.index(n), valueAt(past[k:], at))
		}
	}
}

// valueAt interpolates between the first two steps.
func valueAt(past []step, at time.Duration) float64 {
	if len(past) == 1 || at <= past[0].at {
		return past[0].value
	}
	length := past[1].at - past[0].at
	share := min(1, float64(at-past[0].at)/float64(length))
	return past[0].value + (past[1].value-past[0].value)*share
}

// early returns the value at a time before the first row. The device counted from 0 since c.zero. A part of a ledger
// grows at most as fast as the time.
func (c *column) early(s Series, at time.Duration) level {
	if at <= c.zero || c.first == 0 {
		return level{}
	}
	before, after := (at - c.zero).Seconds(), (c.since - at).Seconds()
	value := c.first * before / (before + after)
	if k := s.kind(); k != kindLedger && k != kindGain {
		return level{0, value, c.first}
	}
	return level{max(0, c.first-after), value, min(c.first, before)}
}

// Past returns since when there are readings of a job that was a candidate, and when its counters were 0 before. It is
// false for other jobs.
func (h *History) Past(job string) (zero, since time.Duration, ok bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	_, g := h.find(JobCPUTime, job)
	if g == nil || !g.recalled {
		return 0, 0, false
	}
	return g.columns[0].zero, g.columns[0].since, true
}

// LedgerRows returns the times of the rows of ledgers, from a time on.
func (h *History) LedgerRows(since time.Duration) (rows []time.Duration) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a := &h.axes[ledgerAxis]
	if !a.used {
		return nil
	}
	t := &a.tiers[0]
	for n := t.begin(since); n < t.next; n++ {
		rows = append(rows, t.at(n))
	}
	return rows
}

// LedgerRow is the totals of one ledger at the time of a row.
type LedgerRow struct {
	At     time.Duration
	Totals LedgerTotals
}

// RecallLedger adds a ledger with its past: rows in the order of time, the last one at the newest row of ledgers. All
// totals were 0 at zero. ErrFull means that there is no room for it.
func (h *History) RecallLedger(zero time.Duration, rows []LedgerRow) error {
	if len(rows) == 0 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	a := &h.axes[ledgerAxis]
	before := h.refused.count
	last := []LedgerTotals{rows[len(rows)-1].Totals}
	eachLedger(last, func(key groupKey, _ [maxColumns]float64) {
		if a.groups[key] != nil {
			return
		}
		h.recall(a, key, zero, func(column int) []step {
			steps := make([]step, 0, len(rows))
			for i := range rows {
				eachLedger([]LedgerTotals{rows[i].Totals}, func(other groupKey, values [maxColumns]float64) {
					if other == key {
						steps = append(steps, step{rows[i].At, values[column]})
					}
				})
			}
			return steps
		})
	})
	return h.refused.since(before)
}
