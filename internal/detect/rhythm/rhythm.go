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
	number  int              // of looks
	at      time.Duration    // the last look
	read    time.Duration    // the newest reading at the last one
	maps    maps
	stores  stores
	shown   shown
	workers workers
	passes  passes
	spans   [2][]span // that ended, by evidence

	// What was emitted.
	chosen evidence
	locked bool
	count  int           // of epochs that were found
	until  time.Duration // end of the last one
}

// New returns a detector. It is a detect.New.
func New(job string) detect.Detector { return &Detector{job: job} }

// Busy reports that ten looks a second are not needed: when processes started is known exactly.
func (d *Detector) Busy() bool { return false }

// fineFor is how long the counters are read often after the begin of what may be an epoch. A second at both ends of a
// longer one is little of what it read.
const fineFor = 30 * time.Second

// Counts reports whether something goes on that may be a short epoch.
func (d *Detector) Counts() bool {
	return d.passes.begun && d.at-d.passes.pass.begin < fineFor || d.at-d.workers.newest() < fineFor
}

// Look takes the facts of a look. A job whose processes have all ended is over, also if it is listed for longer.
func (d *Detector) Look(f *detect.Facts) []detect.Found {
	if len(f.Processes) == 0 && len(d.before) > 0 {
		return d.end(f)
	}
	d.learn(f)
	return d.find(f, false)
}

// Close returns the last epoch.
func (d *Detector) Close(f *detect.Facts) []detect.Found {
	if len(d.before) == 0 {
		return nil
	}
	return d.end(f)
}

// end ends what goes on. What begins later in the same job is another program.
func (d *Detector) end(f *detect.Facts) []detect.Found {
	l := d.learn(f)
	d.keep(byFiles, d.passes.close(l))
	found := d.find(f, true)
	*d = Detector{job: d.job, looked: d.looked, count: d.count, until: d.until}
	return found
}

func (d *Detector) learn(f *detect.Facts) *look {
	d.number++
	d.at = f.At
	l := d.look(f)
	d.maps.look(l)
	d.stores.look(l, !d.looked)
	d.keep(byWorkers, d.workers.look(l, !d.looked))
	d.endBefore(l)
	d.keep(byFiles, d.passes.look(l, !d.looked))
	d.looked = true
	if f.Past != nil {
		d.read, _ = f.Past.Reading(detect.ReadChars)
	}
	if len(f.Processes) > 0 {
		d.before = append(d.before[:0], f.Processes...)
	}
	return l
}

// endBefore corrects the end of workers that ended before the next ones began: when these did is known exactly, and
// that they did perhaps a look later.
func (d *Detector) endBefore(l *look) {
	born := d.workers.newest()
	for i := range d.spans[byWorkers] {
		s := &d.spans[byWorkers][i]
		if born > s.begin+s.spread && born < s.end && born >= s.end-s.endOpen/2 {
			s.end, s.to = born, l.levelsAt(born)
			s.endOpen = 2 * startTick
		}
	}
}

func (d *Detector) look(f *detect.Facts) *look {
	return &look{f, d.before, d.number, d.read, &d.maps, &d.stores, &d.shown}
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
		all = append(all, group(evidence(of), d.spans[of], &d.stores)...)
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
		case s.stop > 0: // what is stored belongs to no epoch
			end, open = s.stop, s.stopOpen
		case !last: // validation belongs to the epoch before
			end, open = c.spans[i+1].begin, c.spans[i+1].beginOpen
		case c.of == byWorkers:
			// What followed the other epochs until the next begin, as validation in the same process, follows this one, too.
			tail, wide := c.tail()
			open = max(open, min(f.At-end, wide))
			end = max(end, min(end+tail, d.look(f).worked(s.begin, f.At)))
		}
		if s.begin < d.until || end-s.begin < s.least() || i+1 < len(c.spans) && c.broken(i) {
			continue
		}
		read, _ := s.amount(detect.ReadChars)
		found = append(found, detect.Found{
			Kind: window.Epoch, Job: d.job, PID: s.basePID, Path: s.path,
			Epoch: d.count + 1, HasEpoch: true, Start: s.begin, End: end, StartOpen: s.beginOpen, EndOpen: open,
			Confidence: c.score, Bytes: uint64(max(0, read)),
		})
		d.count++
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
