package windows

import (
	"errors"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/monitor/sampling"
	"github.com/stallspan/stallspan/internal/window"
)

// Reasons why a span has no report.
var (
	ErrBackward = errors.New("the span ends before it starts")
	ErrEmpty    = errors.New("the span has no length")
	ErrFuture   = errors.New("the span ends later than this machine's clock")
	ErrOld      = errors.New("the span began before the oldest reading in memory")
	ErrClock    = errors.New("this machine's clock was set while the span lasted, or showed its times twice")
)

// edgeEvery is the minimum between two readings for spans.
const edgeEvery = 10 * time.Millisecond

// Spans makes reports of spans that other programs have ended. It is safe for concurrent use.
type Spans struct {
	readings *sampling.Readings
	judge    *SlowJudge

	mu     sync.Mutex // held while a reading is taken, so that concurrent callers share it
	newest sampling.Moment
}

// NewSpans returns Spans of the machine of r.
func NewSpans(r *sampling.Readings, j *SlowJudge) *Spans { return &Spans{readings: r, judge: j} }

// Place finds the monotonic time of a span, from its wall times w.Start.Wall and w.End.Wall. The error is one of those
// above.
func (s *Spans) Place(w *window.Window) error {
	length := w.End.Wall.Sub(w.Start.Wall)
	switch {
	case length < 0:
		return ErrBackward
	case length == 0:
		return ErrEmpty
	}
	first, ok := s.readings.History().First(history.LedgerBusy)
	if !ok {
		return ErrOld
	}
	now := s.readings.Present().Mono
	start, okStart := s.readings.History().Mono(w.Start.Wall, now)
	end, okEnd := s.readings.History().Mono(w.End.Wall, now)
	switch {
	case okStart && start < first:
		return ErrOld
	case okEnd && end > now:
		return ErrFuture
	case !okStart || !okEnd || (end-start-length).Abs() > maxClockError:
		return ErrClock
	}
	w.Start.Mono, w.End.Mono = start, end
	return nil
}

// maxClockError is how much the length of a span may differ by the two clocks, which are read one after the other.
const maxClockError = 4 * time.Millisecond

// Report reports on a span that Place has placed. w.Job is a followed job, or "". The report is about the whole machine
// if the job has no ledger of all of that time. For a span that has just ended, Report takes a reading, which it shares
// with other such spans. What the readings around the two ends leave open is the report's Uncertainty.
func (s *Spans) Report(w window.Window) *window.Report {
	w.Next, w.StartEdge, w.EndEdge = nil, nil, nil
	w.Next = s.after(w.End.Mono).Next()
	r := s.readings.Measure(&w)
	if !r.Split && w.Job != "" {
		w.Job = ""
		r = s.readings.Measure(&w)
	}
	r.Next = nil
	s.judge.Final(r)
	return r
}

// after returns a reading from after a moment. It returns the zero Moment, at once, if the history reaches beyond the
// moment, and if the moment is in the future. Calls share readings: there is one every 10 ms at most.
func (s *Spans) after(to time.Duration) sampling.Moment {
	if to > s.readings.Present().Mono || s.reaches(to) {
		return sampling.Moment{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest.Next() != nil {
		last := s.newest.At.Mono
		if last >= to {
			return s.newest
		}
		time.Sleep(edgeEvery - (s.readings.Present().Mono - last))
	}
	s.newest = s.readings.Glimpse()
	return s.newest
}

// reaches reports whether every source has a row in the history at or after a moment.
func (s *Spans) reaches(to time.Duration) bool {
	settled, ok := s.Settled()
	return !ok || settled >= to
}

// Settled returns the newest moment that every source and the ledgers have reached, so that a report up to it needs no
// reading; false without any row.
func (s *Spans) Settled() (at time.Duration, ok bool) {
	h := s.readings.History()
	consider := func(series history.Series) {
		if last, known := h.Last(series); known && (!ok || last < at) {
			at, ok = last, true
		}
	}
	for _, series := range [...]history.Series{
		history.IOSome, history.HostCPUTime, history.DisksBytes, history.LedgerBusy,
	} {
		consider(series)
	}
	if len(h.IDs(history.JobCPUTime)) > 0 {
		consider(history.JobCPUTime)
	}
	return at, ok
}
