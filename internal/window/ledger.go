package window

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger/chain"
)

// Ledger divides a window's time. The times are sums over its GPUs: Busy + Storage + CPU + Other = Duration x the
// number of GPUs. Without a GPU the ledger divides the job's own wall clock: Busy is zero and CPU is the time on a CPU.
type Ledger struct {
	Split   bool // the ledger is known
	Busy    time.Duration
	Storage time.Duration
	CPU     time.Duration
	Other   time.Duration
	Gain    time.Duration // GPU time that instant storage would have saved

	Evidence     Evidence      // "" without a ledger
	Moments      int           // at which the leading threads were looked at, of FromMoments
	NoSchedule   string        // why it is not FromSchedule, and what would change that, without a period; "" if unknown
	OtherReasons []OtherReason // the largest first, at most three; only if the Evidence is Followed
	Ready        time.Duration // part of CPU: ready for a CPU, and without one; 0 if unknown
	Network      time.Duration // part of Other: waiting for peers that serve data; only if the Evidence is Followed
	Peers        []PeerUse     // over TCP: those that were waited for longest first, at most eight
	Silence      *Silence      // the longest time in which nothing came; nil without one that counts
	FromMemory   bool          // a load of data in memory, which cannot have waited for storage

	Ledgers []GPULedger // of each GPU, if there are several

	// BusiestCore is how long the busiest core worked, if the ledger is Unattributed. It is a part of Other.
	BusiestCore time.Duration

	bounded bool     // Storage is less than the running sums of the ledger
	served  bool     // of all waiting for peers, that for those that serve data is nearly all
	width   float64  // half the width of the widest part, as a share of the window's GPU time
	broken  bool     // a counter restarted, or a part of the window was not read
	lost    []string // GPUs that could not be read for a part of it
}

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

// divide is the second stage.
func divide(v *view, r *Report) Ledger {
	l := addLedgers(v, r)
	if v.readMemory() {
		l.Other, l.Storage, l.Gain, l.FromMemory = l.Other+l.Storage, 0, 0, true
	}
	if most, known := v.longestWait(r, &l); known && l.Storage > most {
		l.Gain = time.Duration(float64(l.Gain) * most.Seconds() / l.Storage.Seconds())
		l.Storage, l.Other, l.bounded = most, l.Other+l.Storage-most, true
	}
	l.addPeers(v, r)
	l.Silence = v.silence(r, &l)
	if r.Unattributed() {
		l.Other, l.CPU, l.BusiestCore = l.Other+l.CPU, 0, l.CPU
	}
	return l
}

// addLedgers adds up the ledgers of the window's GPUs.
func addLedgers(v *view, r *Report) (l Ledger) {
	if v.Unread.Seconds() > maxUnread*v.Duration().Seconds() {
		return l // of a phase
	}
	gpus := r.ledgers()
	var widest float64
	for _, gpu := range gpus {
		busy := l.Busy
		width, ok := l.add(v, gpu, len(r.GPUIDs) > 1)
		if !ok {
			return l
		}
		widest = max(widest, width+v.averaging(gpu, l.Busy-busy))
	}
	if v.machine.Target.Job != "" && !v.machine.Target.Own {
		widest = max(widest, cpuTick.Seconds()) // at either end
	}
	if last, ok := v.history.Last(history.GPUBusyTime); ok && v.history.Lags(v.to()) {
		widest = max(widest, (v.End.Mono-last).Seconds()/2) // the driver has not reported this time yet
	}
	l.Split, l.broken = true, l.broken || v.Unread > 0
	total := r.GPUTime()
	if sum := l.Busy + l.Storage + l.CPU; sum > total {
		// The sources are read microseconds apart. This takes the difference at the edges back in proportion.
		scale := float64(total) / float64(sum)
		l.Busy = time.Duration(float64(l.Busy) * scale)
		l.Storage = time.Duration(float64(l.Storage) * scale)
		l.CPU = min(time.Duration(float64(l.CPU)*scale), total-l.Busy-l.Storage)
	}
	l.Other = total - l.Busy - l.Storage - l.CPU
	l.Gain = max(0, min(l.Gain, total-l.busiest()))
	dark := l.addEvidence(v, r)
	if total > 0 {
		l.width = min(1, widest/total.Seconds()*float64(len(gpus))+
			(v.Open.Seconds()/2+v.Unread.Seconds())/v.Duration().Seconds()+dark+l.chance(total))
	}
	return l
}

// averaging is the uncertainty of the busy time of a GPU that reports averages, in seconds. Each may be of a moment, so
// they are like a sample of moments.
func (v *view) averaging(gpu string, busy time.Duration) float64 {
	period := v.history.SamplePeriod(gpu)
	if gpu == "" || period <= 0 || !v.history.AveragesBusy(gpu) {
		return 0
	}
	total := v.Duration().Seconds()
	share := min(1, busy.Seconds()/total)
	return total * min(1, deviations*math.Sqrt(share*(1-share)/max(1, total/period.Seconds())))
}

// stretch is how much longer the window is than the time of it that was read: see Window.Unread.
func (v *view) stretch() float64 {
	if v.Unread <= 0 {
		return 1
	}
	return v.Duration().Seconds() / (v.Duration() - v.Unread).Seconds()
}

// add adds the parts of one GPU and returns half the width of the widest. It is false if they are not known.
func (l *Ledger) add(v *view, gpu string, oneOfSeveral bool) (width float64, ok bool) {
	if d, _ := v.between(history.GPUBusyTime, gpu); gpu != "" && (d.Reset || slices.Contains(v.machine.Lost, gpu)) {
		l.lost = append(l.lost, gpu)
	}
	var parts [3]history.Delta
	if !v.history.BetweenAll(history.LedgerBusy, v.ledgerID(gpu), v.from(), v.to(), parts[:]) {
		return 0, false
	}
	gain, known := v.between(history.LedgerGain, v.ledgerID(gpu))
	if !known { // the history keeps it for a shorter time
		gain = parts[1]
	}
	whole := v.stretch()
	l.Gain += seconds(gain.Value * whole)
	for i, part := range [...]*time.Duration{&l.Busy, &l.Storage, &l.CPU} {
		parts[i].Value *= whole
		*part += seconds(parts[i].Value)
		l.broken = l.broken || parts[i].Reset
		width = max(width, (parts[i].High-parts[i].Low)/2)
	}
	if oneOfSeveral {
		l.Ledgers = append(l.Ledgers, v.gpuLedger(gpu, seconds(parts[0].Value), seconds(parts[1].Value),
			seconds(parts[2].Value)))
	}
	return width, true
}

// addEvidence notes what the ledger was made from. It returns the share of the window's time that this leaves out.
func (l *Ledger) addEvidence(v *view, r *Report) (dark float64) {
	scheduled := func(s history.Series) float64 { return v.scheduled(r, s) }
	total, has := r.GPUTime().Seconds(), scheduled(history.LedgerScheduled)*v.stretch()
	if total <= 0 || has < covered*total {
		l.Evidence, l.NoSchedule = FromPressure, v.noSchedule(has, total)
		return 0
	}
	l.Evidence = FromSchedule
	if sampled := scheduled(history.LedgerSampled) * v.stretch(); sampled > lacking*total {
		l.Evidence, l.NoSchedule = FromMoments, v.machine.NoSchedule
		l.Moments = int(scheduled(history.LedgerMoments))
	}
	l.Ready = min(seconds(scheduled(history.LedgerReady)), l.CPU)
	l.OtherReasons = v.otherReasons(r, l.Other)
	l.Gain = seconds(max(0, min(l.Gain.Seconds(), total-v.shortest(r, l.busiest()))))
	return max(0, 1-has/total)
}

// chance is the uncertainty of the widest part of a ledger from moments, as a share of the window's time.
func (l *Ledger) chance(total time.Duration) (most float64) {
	if l.Evidence != FromMoments {
		return 0
	}
	s := l.shares(total)
	for _, share := range []float64{s.Storage, s.Work(), s.Other} {
		most = max(most, deviations*math.Sqrt(share*(1-share)/float64(max(1, l.Moments))))
	}
	return min(most, 1)
}

// shares returns the parts as shares of a time. The CPU share of an Unattributed ledger is that of the busiest core.
func (l *Ledger) shares(time time.Duration) Shares {
	total := time.Seconds()
	if total <= 0 {
		return Shares{}
	}
	return Shares{
		Busy:    l.Busy.Seconds() / total,
		Storage: l.Storage.Seconds() / total,
		CPU:     (l.CPU - l.Ready + l.BusiestCore).Seconds() / total,
		Other:   (l.Other - l.BusiestCore).Seconds() / total,
		Network: l.Network.Seconds() / total,
		Ready:   l.Ready.Seconds() / total,
	}
}

// noSchedule is why the ledger is not made from the scheduler's evidence, which covers so much of it.
func (v *view) noSchedule(has, total float64) string {
	if v.machine.NoSchedule == "" && total > 0 && has > 0 {
		return fmt.Sprintf("its threads were followed for only %.0f %% of it", 100*has/total)
	}
	return v.machine.NoSchedule
}

// scheduled sums a column of the ledgers over the GPUs, in seconds.
func (v *view) scheduled(r *Report, s history.Series) (sum float64) {
	for _, gpu := range r.ledgers() {
		sum += v.scheduledOf(s, gpu)
	}
	return sum
}

// scheduledOf returns the growth of a column of one GPU's ledger, in seconds.
func (v *view) scheduledOf(s history.Series, gpu string) float64 {
	grown, _ := v.between(s, v.ledgerID(gpu))
	return grown.Value
}

// otherKinds has the kind of each reason.
var otherKinds = [chain.ReasonKinds]OtherKind{
	chain.ForGPU: OtherGPU, chain.ForNetwork: OtherNetwork, chain.ForPipe: OtherPipe, chain.ForLock: OtherLock,
	chain.ForTimer: OtherTimer, chain.ForChild: OtherChild, chain.ForSteal: OtherSteal, chain.ForStop: OtherStop,
	chain.ForEvent: OtherEvent,
}

// otherReasons names the largest parts of other.
func (v *view) otherReasons(r *Report, other time.Duration) (all []OtherReason) {
	total := r.GPUTime().Seconds()
	for i, kind := range otherKinds {
		time := min(v.scheduled(r, history.OtherGPU+history.Series(i)), other.Seconds())
		if time < minReason*total {
			continue
		}
		name := ""
		for _, gpu := range r.ledgers() {
			name = cmp.Or(name, v.machine.Waits[gpu].Name(chain.ReasonKind(i)))
		}
		all = append(all, OtherReason{kind, cmp.Or(name, string(kind)), seconds(time)})
	}
	all = within(all, other)
	slices.SortStableFunc(all, func(x, y OtherReason) int { return cmp.Compare(y.Time, x.Time) })
	return all[:min(len(all), maxReasons)]
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
	OtherStop    OtherKind = "stopped"
	OtherEvent   OtherKind = "event"
)

// known reports whether the kind says what was waited for: an event may be anything.
func (k OtherKind) known() bool { return k != "" && k != OtherEvent }

// MainReason returns the kind of reasons that is most of other, with its time; "" if none is half of it.
func (l *Ledger) MainReason() (kind OtherKind, most time.Duration) {
	sums := map[OtherKind]time.Duration{}
	for _, one := range l.OtherReasons {
		if sums[one.Kind] += one.Time; sums[one.Kind] >= l.Other/2 && sums[one.Kind] > most {
			kind, most = one.Kind, sums[one.Kind]
		}
	}
	return kind, most
}
