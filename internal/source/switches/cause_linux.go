package switches

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// cause is what a thread pauses for, if /proc shows it.
type cause struct {
	state   sample.ThreadState
	syscall int
	file    sample.FileKind
	detail  uint64
	peer    string // of a socket, as sample.ThreadEvent has it
}

// unseen is the cause of a pause of a thread that was never looked at: it waits for an event.
var unseen = cause{state: sample.StateAsleep, file: sample.OtherFile}

// pause is a stretch in which a thread is off its CPU.
type pause struct {
	thread   *thread
	from, to time.Duration // to is 0 while it lasts
	ready    bool          // it was preempted
	seen     bool          // it was looked at
	looked   time.Duration // when that look was over
	cause    cause
}

// seen is a pause that was looked at.
type seen struct {
	at     time.Duration
	length float64 // s
	cause  cause
}

const (
	maxSeen  = 64
	shortest = 1e-6 // s
	alike    = 0.5  // natural logarithm of the ratio of two lengths that are alike
	fresh    = 4.0  // s, over which what was seen fades
	least    = 1e-9 // weight of pauses of other lengths, if none is alike
)

// past holds the newest pauses of a thread that were looked at. A pause that was not is assumed to have the cause of
// one of them of about the same length, and of about the same time. Longer pauses are looked at more often, so each
// counts by how unlikely that was.
type past struct {
	pauses [maxSeen]seen
	count  int
	chance map[int]*[maxSeen]float64 // sums of weights, by lengthClass, until the next change
}

func (p *past) add(at, length time.Duration, c cause) {
	p.pauses[p.count%maxSeen] = seen{at, max(length.Seconds(), shortest), c}
	p.count++
	clear(p.chance)
}

// classes is the number of classes of length to the e-fold.
const classes = 4

// guess draws a cause for a pause of some length.
func (p *past) guess(now, length time.Duration, random *rand.Rand) cause {
	n := min(p.count, maxSeen)
	if n == 0 {
		return unseen
	}
	class := int(math.Round(classes * math.Log(max(length.Seconds(), shortest))))
	sums := p.chance[class]
	if sums == nil {
		sums = p.weigh(now, math.Exp(float64(class)/classes), n)
		if p.chance == nil {
			p.chance = map[int]*[maxSeen]float64{}
		}
		p.chance[class] = sums
	}
	i, _ := slices.BinarySearch(sums[:n-1], random.Float64()*sums[n-1])
	return p.pauses[i].cause
}

// weigh returns the sums of the weights of the first n pauses, for a length in seconds.
func (p *past) weigh(now time.Duration, length float64, n int) *[maxSeen]float64 {
	var sums [maxSeen]float64
	sum := 0.0
	for i := range n {
		s := &p.pauses[i]
		off := math.Log(s.length/length) / alike
		weight := math.Exp(-off*off/2)/min(1, s.length/pollEvery.Seconds()) + least/(1+off*off)
		sum += weight * (math.Exp(-max(0, (now-s.at).Seconds())/fresh) + least)
		sums[i] = sum
	}
	return &sums
}
