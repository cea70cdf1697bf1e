package history

import "time"

// LedgerTotals are the parts into which the time of one job on one GPU has been divided so far. The rest of the wall
// clock is idle time without a known cause. Without a GPU, Busy stays zero and CPU is the job's own time on a CPU.
type LedgerTotals struct {
	ID      string        // made from job and GPU by the ledger package
	Busy    time.Duration // the GPU was working
	Storage time.Duration // idle while the job waited for storage
	CPU     time.Duration // idle while the input pipeline used or waited for a CPU
	Gain    time.Duration // time that instant storage would have saved; equals Storage unless HasGain
	HasGain bool          // the job's threads are known, and some may read ahead

	Scheduled *Scheduled // nil where the scheduler reports nothing
}

// Scheduled are totals that only evidence of the scheduler gives.
type Scheduled struct {
	Time        time.Duration    // that was divided by this evidence
	GainLow     time.Duration    // as Gain, if the kernel's work to fetch data stayed
	GainWorkers time.Duration    // time that twice the readers would have saved
	GainGPU     time.Duration    // time that a GPU twice as fast would have saved
	GainNetwork time.Duration    // time that instant storage and peers that send at once would have saved
	Fed         time.Duration    // in which the leading thread waited for one that reads data
	Work        time.Duration    // CPU time of the job, without fetching data
	Sampled     time.Duration    // part of Time, that was divided by moments
	Moments     int              // at which the leading thread was looked at
	Ready       time.Duration    // part of LedgerTotals.CPU: ready for a CPU, and without one
	Other       [9]time.Duration // parts of other, in the order of OtherGPU and the series after it
}

// AppendLedgers adds one row of ledger totals. It ignores a row that is not later than the last one. ErrFull means that
// a ledger found no room; the others are kept.
func (h *History) AppendLedgers(at time.Duration, totals []LedgerTotals) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := &h.axes[ledgerAxis]
	if len(totals) == 0 || a.used && at <= a.last {
		return nil
	}
	before := h.refused.count
	h.openAxis(a)
	eachLedger(totals, func(key groupKey, values [maxColumns]float64) { h.advance(a, key, values, 0, at) })
	h.commit(a, at)
	return h.refused.since(before)
}

// ObserveLedgers adds ledger totals to an edge, as Observe adds a reading.
func (h *History) ObserveLedgers(e *Edge, totals []LedgerTotals) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a := &h.axes[ledgerAxis]
	eachLedger(totals, func(key groupKey, values [maxColumns]float64) { e.observe(a, key, values, 0) })
	e.sort()
}

// eachLedger yields the columns of each ledger.
func eachLedger(totals []LedgerTotals, yield func(key groupKey, values [maxColumns]float64)) {
	for i := range totals {
		l := &totals[i]
		v := [maxColumns]float64{l.Busy.Seconds(), l.Storage.Seconds(), l.CPU.Seconds()}
		yield(groupKey{kindLedger, l.ID}, v)
		if l.HasGain {
			v[0] = l.Gain.Seconds()
			yield(groupKey{kindGain, l.ID}, v)
		}
		if s := l.Scheduled; s != nil {
			v = [maxColumns]float64{
				s.Time.Seconds(), s.GainLow.Seconds(), s.GainWorkers.Seconds(), s.GainGPU.Seconds(), s.Work.Seconds(),
				s.Fed.Seconds(), s.GainNetwork.Seconds(), s.Ready.Seconds(),
			}
			yield(groupKey{kindScheduled, l.ID}, v)
			for k, other := range s.Other {
				v[k] = other.Seconds()
			}
			yield(groupKey{kindOther, l.ID}, v)
			v = [maxColumns]float64{s.Sampled.Seconds(), float64(s.Moments)}
			yield(groupKey{kindSampled, l.ID}, v)
		}
	}
}
