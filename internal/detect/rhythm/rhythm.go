// Package rhythm finds the epochs of a training job from the outside: by generations of worker processes that begin and
// end together, and by data files that are read from the begin again. What repeats must do the same work each time, and
// the process that uses it must go on. Below a confidence nothing is found.
package rhythm

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/window"
)

// Threshold is the confidence below which nothing is emitted.
const Threshold = 0.95

// Detector finds the epochs of one job. It is a detect.Detector.
type Detector struct {
	job     string
	looked  bool
	before  []detect.Process // of the last look with any
	workers workers
	passes  passes
	spans   [2][]span // that ended, by evidence

	// What was emitted.
	chosen evidence
	locked bool
	number int           // of epochs that were found
	until  time.Duration // end of the last one
}

// New returns a detector. It is a detect.New.
func New(job string) detect.Detector { return &Detector{job: job} }

// Busy reports that ten looks a second are not needed: when processes started is known exactly.
func (d *Detector) Busy() bool { return false }

// Look takes the facts of a look.
func (d *Detector) Look(f *detect.Facts) []detect.Found {
	d.learn(f)
	return d.find(f, false)
}

// Close returns the last epoch.
func (d *Detector) Close(f *detect.Facts) []detect.Found {
	d.learn(f)
	d.keep(byFiles, d.passes.close(&look{f, d.before}))
	return d.find(f, true)
}

func (d *Detector) learn(f *detect.Facts) {
	l := look{f, d.before}
	d.keep(byWorkers, d.workers.look(&l, !d.looked))
	d.keep(byFiles, d.passes.look(&l, !d.looked))
	d.looked = true
	if len(f.Processes) > 0 {
		d.before = append(d.before[:0], f.Processes...)
	}
}

func (d *Detector) keep(of evidence, ended []span) {
	if len(ended) == 0 {
		return
	}
	kept := slices.Concat(d.spans[of], ended)
	if over := len(kept) - maxSpans; over > 0 {
		kept = slices.Delete(kept, 0, over)
	}
	slices.SortStableFunc(kept, func(a, b span) int { return int(a.begin - b.begin) })
	d.spans[of] = kept
}

// cycles returns what repeats, the best first.
func (d *Detector) cycles() (all []cycle) {
	for of := range d.spans {
		all = append(all, group(evidence(of), d.spans[of])...)
	}
	slices.SortStableFunc(all, func(a, b cycle) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	return all
}

// find returns the epochs that have ended and were not returned before.
func (d *Detector) find(f *detect.Facts, ended bool) (found []detect.Found) {
	all := d.cycles()
	if d.locked {
		all = slices.DeleteFunc(all, func(c cycle) bool { return c.of != d.chosen })
	}
	if len(all) == 0 || all[0].score < Threshold {
		return nil
	}
	c := &all[0]
	for i := range all { // of those, what takes most of the time is the epoch, and not its validation
		if o := &all[i]; o.score >= Threshold && o.lived > c.lived {
			c = o
		}
	}
	for i, s := range c.spans {
		end, open := s.end, s.endOpen
		last := i+1 == len(c.spans)
		if last && !ended {
			break
		}
		switch {
		case !last: // validation belongs to the epoch before
			end, open = c.spans[i+1].begin, c.spans[i+1].beginOpen
		case c.of == byWorkers:
			// What followed the other epochs until the next begin, as validation in the same process, follows this one, too.
			tail, wide := c.tail()
			open = max(open, min(f.At-end, wide))
			end = max(end, min(end+tail, (&look{f, d.before}).worked(s.begin, f.At)))
		}
		if s.begin < d.until || end-s.begin < shortest || i+1 < len(c.spans) && c.broken(i) {
			continue
		}
		read, _ := s.amount(detect.ReadChars)
		found = append(found, detect.Found{
			Kind: window.Epoch, Job: d.job, PID: s.basePID, Path: s.path,
			Epoch: d.number + 1, HasEpoch: true, Start: s.begin, End: end, StartOpen: s.beginOpen, EndOpen: open,
			Confidence: c.score, Bytes: uint64(max(0, read)),
		})
		d.number++
		d.until = end
	}
	d.chosen, d.locked = c.of, d.locked || len(found) > 0
	return found
}

// Candidates calls f with the begins and the features of all that repeated in a job, as it was known after each
// repetition: to fit the weights of the confidence.
func Candidates(of detect.Detector, f func(starts []time.Duration, features []float64)) {
	d, ok := of.(*Detector)
	if !ok {
		return
	}
	for _, whole := range d.cycles() {
		var starts []time.Duration
		for _, s := range whole.spans {
			starts = append(starts, s.begin)
		}
		for n := 2; n <= len(starts); n++ {
			c := cycle{of: whole.of, spans: whole.spans[:n]}
			c.measure(d.spans[c.of])
			if x := c.features(); c.possible() {
				f(starts[:n], x[:])
			}
		}
	}
}
