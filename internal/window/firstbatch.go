package window

import (
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// FirstBatch reports that an epoch did hardly any work in its first part, and much in the rest.
type FirstBatch struct {
	Took    time.Duration // from the start of the epoch until its work began
	Storage time.Duration // part of it: the leading thread waited for storage
	Other   time.Duration // part of it: other
	Read    uint64        // bytes that the job read meanwhile; 0 if unknown
	Workers int           // processes that started meanwhile, as in an epoch before; 0 if there were none
}

// Kind is FirstBatchLate.
func (FirstBatch) Kind() FindingKind { return FirstBatchLate }

// firstBatch looks for the time until an epoch's work began. Work is that of the first GPU, or else of the leading
// thread on the CPU.
func (v *view) firstBatch(r *Report) *FirstBatch {
	if v.Kind != Epoch || !r.Split || v.Unread > 0 || v.ApproximateBounds && v.First {
		return nil
	}
	id, work := v.ledgerID(r.ledgers()[0]), history.LedgerCPU
	if len(r.GPUIDs) > 0 {
		work = history.LedgerBusy
	}
	took := beforeWork(v.history.Steps(history.Key{Series: work, ID: id}, v.from(), v.to()))
	if took == 0 {
		return nil
	}
	begun := history.Point{At: v.Start.Mono + took, Next: v.Next}
	grown := func(s history.Series, id string) float64 {
		d, _ := v.history.Between(history.Key{Series: s, ID: id}, v.from(), begun)
		return max(0, d.Value)
	}
	part := func(s history.Series) time.Duration { return min(took, seconds(grown(s, id))) }
	f := FirstBatch{Took: took, Storage: part(history.LedgerStorage)}
	f.Other = max(0, took-f.Storage-part(history.LedgerCPU)-part(history.LedgerBusy))
	if r.Own != nil {
		f.Read = uint64(grown(history.JobReadBytes, v.machine.Target.Job))
	}
	earlier := false
	for _, at := range v.machine.Started {
		switch {
		case at < v.Start.Mono-startSlack:
			earlier = true
		case at <= begun.At:
			f.Workers++
		}
	}
	if v.First || !earlier {
		f.Workers = 0 // those of a first epoch have to start
	}
	return &f
}

// beforeWork returns how long it took until the work of an interval began: up to the moment at which most of it is
// missing. It returns 0 if that is not much of the interval, or if there was work before: most of all, or too much for
// its time.
func beforeWork(steps []history.Step) time.Duration {
	if len(steps) == 0 {
		return 0
	}
	t := &FindingThresholds
	start, end, all := steps[0].Start, steps[len(steps)-1].End, 0.0
	for _, s := range steps {
		all += s.Grown
	}
	length := (end - start).Seconds()
	var took time.Duration
	var done, before, most float64 // seconds of work
	for _, s := range steps {
		done += s.Grown
		if missing := all*(s.End-start).Seconds()/length - done; missing > most {
			took, before, most = s.End-start, done, missing
		}
	}
	rest := length - took.Seconds()
	if took < t.FirstBatchTime || took.Seconds() < t.FirstBatch*length || rest <= 0 ||
		before > all/2 || all-before < max(t.FirstBatchRest*rest, t.FirstBatchLeast) ||
		before/took.Seconds() > t.FirstBatchWork*(all-before)/rest {
		return 0
	}
	return took
}
