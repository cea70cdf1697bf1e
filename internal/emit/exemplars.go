package emit

import (
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// Bounds of the slow windows that are remembered for exemplars.
const (
	maxSlow      = 256 // some 200 bytes each
	maxSlowOfJob = 4   // and exemplars of one point
)

// slowWindows are the newest slow windows of jobs that waited for storage. They are the exemplars of the time that the
// job lost to it.
type slowWindows struct {
	list  []slowWindow // the oldest first
	added uint64
}

type slowWindow struct {
	number uint64 // of slowWindows.added
	job    string
	pid    int      // its first process, 0 if unknown
	gpus   []string // none without a GPU
	span   metricdata.Exemplar[float64]
}

// add remembers a window. The value of its exemplar is how long it waited for storage, in seconds.
func (s *slowWindows) add(r *window.Report, span trace.SpanContext) {
	if !r.Slow || r.Storage <= 0 || r.Job == "" || !span.IsValid() {
		return
	}
	ofJob := func(w slowWindow) bool { return w.job == r.Job }
	first, n := slices.IndexFunc(s.list, ofJob), 0
	for i := range s.list {
		if ofJob(s.list[i]) {
			n++
		}
	}
	switch {
	case n >= maxSlowOfJob:
		s.list = slices.Delete(s.list, first, first+1)
	case len(s.list) >= maxSlow:
		s.list = slices.Delete(s.list, 0, 1)
	}
	s.added++
	traceID, spanID := span.TraceID(), span.SpanID()
	s.list = append(s.list, slowWindow{s.added, r.Job, r.PID, r.GPUIDs, metricdata.Exemplar[float64]{
		Time: r.Wall(r.End.Mono), Value: r.Storage.Seconds(), TraceID: traceID[:], SpanID: spanID[:],
	}})
}

// newSlow returns the slow windows for this collection: those that ended since the last one, or within RepeatSlow.
func (m *Metrics) newSlow(now time.Time) []slowWindow {
	if m.Durations == nil {
		return nil
	}
	m.Durations.mu.Lock()
	defer m.Durations.mu.Unlock()
	slow := &m.Durations.slow
	seen := m.seenSlow
	m.seenSlow = slow.added
	var list []slowWindow
	for _, w := range slow.list {
		if w.number > seen || m.RepeatSlow > 0 && now.Sub(w.span.Time) < m.RepeatSlow {
			list = append(list, w)
		}
	}
	return list
}

// exemplars returns the windows of a row's job on its GPU, the newest last. A window may have been announced for
// another tree of processes than the job's: it is the job's if its first process is.
func exemplars(row *sample.GPUTime, slow []slowWindow, now *sample.Snapshot) (all []metricdata.Exemplar[float64]) {
	for i := range slow {
		w := &slow[i]
		if row.GPU != "" && len(w.gpus) > 0 && !slices.Contains(w.gpus, row.GPU) {
			continue
		}
		if w.job == row.Job || slices.ContainsFunc(now.Jobs.Processes, func(p sample.Process) bool {
			return p.PID == w.pid && p.Job == row.Job && !p.Feeder
		}) {
			all = append(all, w.span)
		}
	}
	return all[max(0, len(all)-maxSlowOfJob):]
}

// floatFrom is float for a point with exemplars.
func (b *builder) floatFrom(
	m *semconv.Metric, v float64, attrs attribute.Set, exemplars []metricdata.Exemplar[float64],
) {
	b.float(m, v, attrs)
	points := b.floats[m].points
	points[len(points)-1].Exemplars = exemplars
}
