package rhythm

import (
	"math"
	"slices"
	"time"
)

const (
	maxSpans = 128 // that are kept of one kind
	// alike is how much the work of two spans of one kind may differ, as the logarithm of a ratio.
	alike = 0.12
	// shortest is the length below which nothing is an epoch where looks are a second apart. Where there are more, it is
	// that of fewLooks of them, and a quarter of this at least.
	shortest = 2 * time.Second
	fewLooks = 6
	// Of an epoch, workers live for at least this share of the time, and files are read for this share.
	minCover = 0.5
	minEven  = 0.3

	second = time.Second
)

// evidence is what a span was made from.
type evidence int

const (
	byWorkers evidence = iota
	byFiles
)

// cycle is a set of spans that repeat the same work: their begins are those of epochs.
type cycle struct {
	of    evidence
	spans []*span // by begin
	// features of score
	unlike float64 // median of how much neighbours differ
	cover  float64 // share of the time from the first begin to the last end
	works  float64 // share of a core that the job works besides the spans, or 1 if it drives a GPU
	joint  float64 // 1 if several processes are started and end together
	same   float64 // 1 if the numbers of files are equal
	even   float64 // how evenly the job reads within a span
	lived  time.Duration
	score  float64 // confidence
	others []*span // that lie between its spans
}

// group divides spans into sets of those that do the same work, as large as possible in order of begin.
func group(of evidence, spans []span, stored *stores) (all []cycle) {
	for i := range spans {
		s := &spans[i]
		if s.duration() < shortest/4 || !s.whole || s.selfDrives || s.stores {
			continue
		}
		k := slices.IndexFunc(all, func(c cycle) bool {
			last := c.spans[len(c.spans)-1]
			return last.end-s.begin <= max(last.endOpen, second) && sameCount(of, last, s) && unlike(last, s) <= alike
		})
		if k < 0 {
			all = append(all, cycle{of: of})
			k = len(all) - 1
		}
		all[k].spans = append(all[k].spans, s)
	}
	all = slices.DeleteFunc(all, func(c cycle) bool { return len(c.spans) < 2 })
	for i := range all {
		all[i].others = all[i].between(spans)
		all[i].stops(stored)
		all[i].measure(spans)
	}
	return all
}

// stops finds what is stored between workers that have ended and the next ones.
func (c *cycle) stops(stored *stores) {
	for i, s := range c.spans {
		if c.of != byWorkers {
			continue // a pass knows it
		}
		ended, until := s.end, time.Duration(math.MaxInt64)
		if i+1 < len(c.spans) {
			until = c.spans[i+1].begin
		}
		for _, x := range c.others { // validation
			if x.begin > s.begin && x.begin < until {
				ended = max(ended, x.end)
			}
		}
		s.stop, s.stopOpen = 0, 0
		if one, ok := stored.between(ended, until); ok {
			s.stop, s.stopOpen = one.at, one.open
		}
	}
}

// sameCount compares the numbers of processes, or of files. Looks miss files that are open for a short time.
func sameCount(of evidence, a, b *span) bool {
	if of == byWorkers {
		return a.count == b.count
	}
	return math.Abs(math.Log(float64(a.count)/float64(b.count))) <= 0.25
}

// measure sets the features and the confidence.
func (c *cycle) measure(spans []span) {
	n := len(c.spans)
	first, last := c.spans[0], c.spans[n-1]
	var differ []float64
	var total, worked time.Duration
	lived, stored := time.Duration(0), time.Duration(0)
	c.same, c.joint, c.even = 1, 1, 0
	least := 1.0
	drives, base := true, first.basePID
	for i, s := range c.spans {
		lived += min(s.end, s.stopped()) - s.begin
		if s.stop > 0 && i+1 < n {
			stored += max(0, c.spans[i+1].begin-s.stop)
		}
		c.even += s.evenness / float64(n)
		least = min(least, s.evenness)
		worked += time.Duration(s.baseCPU * float64(time.Second))
		drives = drives && s.drives
		if s.basePID != base {
			base = 0 // those that use what is read are not the same: each span is a program of its own
		}
		if s.count != first.count {
			c.same = 0
		}
		if s.count < 2 || s.spread > s.duration()/4 || s.ending > max(2*time.Second, s.duration()/4) {
			c.joint = 0
		}
		if i > 0 {
			differ = append(differ, unlike(c.spans[i-1], s))
		}
	}
	if least < minEven { // one that reads at its begin alone is a load
		c.even = 0
	}
	c.lived, total = lived, last.end-first.begin
	slices.Sort(differ)
	c.unlike = differ[len(differ)/2]
	c.cover = min(1, covered(spans, first.begin, last.end).Seconds()/max((total-stored).Seconds(), 1e-9))
	c.works = min(1, worked.Seconds()/max(lived.Seconds(), 1e-9))
	switch {
	case base == 0:
		c.works = 0
	case drives:
		c.works = 1
	}
	c.score = c.confidence()
}

// between returns the spans of the same evidence that began between those of a cycle and do not overlap them.
func (c *cycle) between(spans []span) (others []*span) {
	first, last := c.spans[0], c.spans[len(c.spans)-1]
	for i := range spans {
		x := &spans[i]
		overlaps := func(s *span) bool { return min(s.end, x.end)-max(s.begin, x.begin) > second }
		between := x.begin > first.begin && x.begin < last.end
		if between && !slices.Contains(c.spans, x) && !slices.ContainsFunc(c.spans, overlaps) {
			others = append(others, x)
		}
	}
	return others
}

// isPart reports whether more lies between the spans of a cycle than in them: then it may be the validation of epochs.
func (c *cycle) isPart() bool {
	sum := time.Duration(0)
	for _, x := range c.others {
		sum += x.duration()
	}
	return sum > c.lived
}

// covered returns the time from one moment to another in which any span went on: validation may have workers, too.
func covered(spans []span, from, to time.Duration) (sum time.Duration) {
	for i := range spans { // by begin
		begin, end := max(spans[i].begin, from), min(spans[i].end, to)
		if end > begin {
			sum += end - begin
			from = end
		}
	}
	return sum
}

// confidence is a logistic function of the features. Its weights were chosen with seed 1 and made-up jobs: see
// docs/internals/results.md.
func (c *cycle) confidence() float64 {
	if !c.possible() {
		return 0
	}
	x := c.features()
	z := 0.0
	for i, w := range weights {
		z += w * x[i]
	}
	return 1 / (1 + math.Exp(-z))
}

// broken reports whether an epoch may have been missed between a span and the next: one that did nearly the same, but
// not as exactly as the others, as when looks were late.
func (c *cycle) broken(i int) bool {
	s, next := c.spans[i], c.spans[i+1]
	return slices.ContainsFunc(c.others, func(x *span) bool {
		return x.begin > s.begin && x.begin < next.begin && sameCount(c.of, s, x) && unlike(s, x) < math.Ln2
	})
}

// possible reports whether a cycle has what any epochs have: something that uses what is read, most of the time.
func (c *cycle) possible() bool {
	least := time.Duration(0)
	for _, s := range c.spans {
		least += s.least()
	}
	return !c.isPart() && !elsewhere(c.spans) && c.lived >= least && c.works >= workShare &&
		c.cover >= minCover && c.even >= minEven
}

const features = 8

func (c *cycle) features() [features]float64 {
	return [features]float64{
		1,
		min(3, math.Log2(float64(len(c.spans)))),
		min(1, c.unlike/alike),
		c.cover,
		math.Sqrt(c.works),
		c.joint,
		c.same,
		c.even,
	}
}

var weights = [features]float64{-8, 2.5, -4, 4, 2, 1, 1, 2}

// tail returns how long it usually is from the end of a span to the begin of the next one, or to when something is
// stored, and how much that differs.
func (c *cycle) tail() (usual, differs time.Duration) {
	var all []time.Duration
	for i, s := range c.spans[1:] {
		before := c.spans[i]
		end := s.begin
		if before.stop > 0 {
			end = before.stop
		}
		all = append(all, end-before.end)
	}
	slices.Sort(all)
	return max(0, all[len(all)/2]), all[len(all)-1] - all[0]
}
