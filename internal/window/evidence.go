package window

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/ledger/chain"
)

// Evidence is what a ledger was made from.
type Evidence string

// The kinds of evidence, from the best to the weakest.
const (
	FromSchedule Evidence = "schedule" // every change of state of the job's threads
	FromMoments  Evidence = "sampled"  // what they were in at random moments
	FromPressure Evidence = "pressure" // pressure stall information where the kernel has it, disk queues and CPU times
)

// Followed reports whether the ledger was made from what each thread of the job did, and not from sums of all.
func (e Evidence) Followed() bool { return e == FromSchedule || e == FromMoments }

// evidence notes what the ledger was made from. It returns the share of the window's time that this leaves out.
func (b *builder) evidence() (dark float64) {
	total, has := b.GPUTime().Seconds(), b.scheduled(history.LedgerScheduled)*b.stretch()
	if total <= 0 || has < covered*total {
		b.Evidence, b.NoSchedule = FromPressure, b.noSchedule(has, total)
		return 0
	}
	b.Evidence = FromSchedule
	if sampled := b.scheduled(history.LedgerSampled) * b.stretch(); sampled > lacking*total {
		b.Evidence, b.NoSchedule = FromMoments, b.machine.NoSchedule
		b.Moments = int(b.scheduled(history.LedgerMoments))
	}
	b.Ready = min(seconds(b.scheduled(history.LedgerReady)), b.CPU)
	b.otherReasons()
	b.whatIf()
	return max(0, 1-has/total)
}

// chance is the uncertainty of the widest part of a ledger from moments, as a share of the window's time.
func (b *builder) chance() (most float64) {
	if b.Evidence != FromMoments {
		return 0
	}
	s := b.Shares()
	for _, share := range []float64{s.Storage, s.CPU, s.Other} {
		most = max(most, deviations*math.Sqrt(share*(1-share)/float64(max(1, b.Moments))))
	}
	return min(most, 1)
}

// noSchedule is why the ledger is not made from the scheduler's evidence, which covers so much of it.
func (b *builder) noSchedule(has, total float64) string {
	if b.machine.NoSchedule == "" && total > 0 && has > 0 {
		return fmt.Sprintf("its threads were followed for only %.0f %% of it", 100*has/total)
	}
	return b.machine.NoSchedule
}

// scheduled sums a column of the ledgers over the GPUs, in seconds.
func (b *builder) scheduled(s history.Series) (sum float64) {
	for _, gpu := range b.ledgers() {
		sum += b.scheduledOf(s, gpu)
	}
	return sum
}

// scheduledOf returns the growth of a column of one GPU's ledger, in seconds.
func (b *builder) scheduledOf(s history.Series, gpu string) float64 {
	grown, _ := b.between(s, ledger.ID(b.machine.Target.Job, gpu))
	return grown.Value
}

// ledgers lists the GPUs with ledgers; a single "" without a GPU.
func (b *builder) ledgers() []string {
	if len(b.GPUIDs) == 0 {
		return []string{""}
	}
	return b.GPUIDs
}

// otherKinds has the kind of each reason.
var otherKinds = [chain.ReasonKinds]OtherKind{
	chain.ForGPU: OtherGPU, chain.ForNetwork: OtherNetwork, chain.ForPipe: OtherPipe, chain.ForLock: OtherLock,
	chain.ForTimer: OtherTimer, chain.ForChild: OtherChild, chain.ForSteal: OtherSteal, chain.ForEvent: OtherEvent,
}

// otherReasons names the largest parts of other.
func (b *builder) otherReasons() {
	total := b.GPUTime().Seconds()
	for i, kind := range otherKinds {
		time := min(b.scheduled(history.OtherGPU+history.Series(i)), b.Other.Seconds())
		if time < minReason*total {
			continue
		}
		name := ""
		for _, gpu := range b.ledgers() {
			name = cmp.Or(name, b.machine.Waits[gpu].Name(chain.ReasonKind(i)))
		}
		b.OtherReasons = append(b.OtherReasons, OtherReason{kind, cmp.Or(name, string(kind)), seconds(time)})
	}
	b.OtherReasons = within(b.OtherReasons, b.Other)
	slices.SortStableFunc(b.OtherReasons, func(x, y OtherReason) int { return cmp.Compare(y.Time, x.Time) })
	b.OtherReasons = b.OtherReasons[:min(len(b.OtherReasons), maxReasons)]
}

// within makes parts that add up to more than the whole smaller, all by the same factor. A cell of the ledger whose
// time on the CPU is known from elsewhere may leave less for other than its reasons took.
func within(parts []OtherReason, whole time.Duration) []OtherReason {
	var sum time.Duration
	for _, p := range parts {
		sum += p.Time
	}
	for i := range parts {
		if sum > whole {
			parts[i].Time = time.Duration(float64(parts[i].Time) * whole.Seconds() / sum.Seconds())
		}
	}
	return parts
}

// OtherReason is a part of the time that is other. The names say what was waited for.
type OtherReason struct {
	Kind OtherKind
	Name string // "receiving from 10.0.0.7:443 over TCP", "futex, held by thread feeder"
	Time time.Duration
}

// OtherKind is the kind of an OtherReason.
type OtherKind string

// The kinds of reasons.
const (
	OtherGPU     OtherKind = "gpu_driver"
	OtherNetwork OtherKind = "network"
	OtherPipe    OtherKind = "pipe"
	OtherLock    OtherKind = "lock"
	OtherTimer   OtherKind = "timer"
	OtherChild   OtherKind = "child_process"
	OtherSteal   OtherKind = "steal"
	OtherEvent   OtherKind = "event"
)
