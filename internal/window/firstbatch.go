package window

import (
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
)

// FirstBatch reports that an epoch did hardly any work in its first part, and much in the rest.
type FirstBatch struct {
	Took    time.Duration // from the start of the epoch until its work began
	Storage time.Duration // part of it: the leading thread waited for storage
	Read    uint64        // bytes that the job read meanwhile; 0 if unknown
	Workers int           // processes that started meanwhile, as in an epoch before; 0 if there were none
}

// Kind is FirstBatchLate.
func (FirstBatch) Kind() FindingKind { return FirstBatchLate }

// firstBatch looks for the time until an epoch's work began. Work is that of the first GPU, or else of the leading
// thread on the CPU.
func (b *builder) firstBatch() {
	if b.Kind != Epoch || !b.Split || b.Unread > 0 || b.ApproximateBounds && b.First {
		return
	}
	id, work := ledger.ID(b.machine.Target.Job, b.ledgers()[0]), history.LedgerCPU
	if len(b.GPUIDs) > 0 {
		work = history.LedgerBusy
	}
	took := beforeWork(b.history.Steps(history.Key{Series: work, ID: id}, b.from(), b.to()))
	if took == 0 {
		return
	}
	begun := history.Point{At: b.Start.Mono + took, Next: b.Next}
	grown := func(s history.Series, id string) float64 {
		d, _ := b.history.Between(history.Key{Series: s, ID: id}, b.from(), begun)
		return max(0, d.Value)
	}
	f := FirstBatch{Took: took, Storage: min(took, seconds(grown(history.LedgerStorage, id)))}
	if b.Own != nil {
		f.Read = uint64(grown(history.JobReadBytes, b.machine.Target.Job))
	}
	earlier := false
	for _, at := range b.machine.Started {
		switch {
		case at < b.Start.Mono-startSlack:
			earlier = true
		case at <= begun.At:
			f.Workers++
		}
	}
	if b.First || !earlier {
		f.Workers = 0 // those of a first epoch have to start
	}
	b.Findings = append(b.Findings, f)
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
		before > all/2 || before/took.Seconds() > t.FirstBatchWork*(all-before)/rest {
		return 0
	}
	return took
}
