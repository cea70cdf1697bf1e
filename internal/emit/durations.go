package emit

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// Bounds of the attribute sets of a histogram. A further one replaces the one that has had no window for longest: names
// of runs often have a time in them, so most never come back. A set of detected windows replaces another such set, so
// that they leave room for those that programs announce.
const (
	maxSets         = 256
	maxDetectedSets = maxSets / 2
)

// Bucket bounds in seconds: a load takes up to minutes, an epoch from seconds to a day.
var (
	loadBounds  = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600}
	epochBounds = []float64{1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400}
)

// Durations holds the histograms of the durations of loads and epochs, and the newest slow windows of jobs. The zero
// value is ready. It is safe for concurrent use.
type Durations struct {
	mu     sync.Mutex
	loads  histogram
	epochs histogram
	slow   slowWindows
}

type histogram struct {
	began time.Time // before the first window
	ended time.Time // of the newest window
	sets  map[attribute.Distinct]*durationSet
	order []*durationSet // the oldest first
	added uint64         // windows

	detected int // sets of detected windows
}

// durationSet is one attribute set of a histogram. Its StartTime is that of the histogram, or when it replaced another.
type durationSet struct {
	metricdata.HistogramDataPoint[float64]
	newest   uint64 // value of histogram.added at its newest window
	detected bool   // of detected windows
}

// Add counts an ended window. span is its exemplar and may be invalid. Only loads and epochs have a histogram.
func (d *Durations) Add(r *window.Report, span trace.SpanContext) {
	attrs := list{semconv.VerdictKey.String(string(r.Verdict)), semconv.SlowKey.Bool(r.Slow)}
	attrs.text(semconv.WindowEvidenceKey, string(r.Evidence))
	attrs.text(semconv.WindowSourceKey, string(r.Source))
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow.add(r, span)
	switch r.Kind {
	case window.ModelLoad:
		attrs.text(semconv.ModelNameKey, r.Model)
		d.loads.add(r, loadBounds, attrs, span)
	case window.Epoch:
		attrs.text(semconv.TrainingRunNameKey, r.Run)
		d.epochs.add(r, epochBounds, attrs, span)
	}
}

func (h *histogram) add(r *window.Report, bounds []float64, attrs []attribute.KeyValue, span trace.SpanContext) {
	if h.sets == nil {
		h.began = r.Start.Wall
		h.sets = map[attribute.Distinct]*durationSet{}
	}
	set := attribute.NewSet(attrs...)
	p := h.sets[set.Equivalent()]
	if p == nil {
		p = &durationSet{HistogramDataPoint: metricdata.HistogramDataPoint[float64]{
			Attributes:   set,
			Bounds:       bounds,
			BucketCounts: make([]uint64, len(bounds)+1),
			StartTime:    h.began,
		}}
		p.detected = r.Source == window.Detected
		if full := p.detected && h.detected >= maxDetectedSets; full || len(h.sets) >= maxSets {
			h.evict(full)
			p.StartTime = r.Start.Wall
		}
		if p.detected {
			h.detected++
		}
		h.sets[set.Equivalent()] = p
		h.order = append(h.order, p)
	}
	h.added++
	p.newest = h.added
	if end := r.Wall(r.End.Mono); end.After(h.ended) {
		h.ended = end
	}
	v := r.Duration().Seconds()
	i := 0
	for i < len(bounds) && v > bounds[i] {
		i++
	}
	p.BucketCounts[i]++
	p.Count++
	p.Sum += v
	if p.Count == 1 {
		p.Min, p.Max = metricdata.NewExtrema(v), metricdata.NewExtrema(v)
	}
	shortest, _ := p.Min.Value()
	longest, _ := p.Max.Value()
	p.Min, p.Max = metricdata.NewExtrema(min(shortest, v)), metricdata.NewExtrema(max(longest, v))
	if span.IsValid() {
		p.Exemplars = exemplar(p.Exemplars, span, r.Wall(r.End.Mono), v)
	}
}

// evict drops the set that has had no window for longest, of all sets or of those of detected windows.
func (h *histogram) evict(detected bool) {
	var oldest *durationSet
	for _, s := range h.order {
		if (s.detected || !detected) && (oldest == nil || s.newest < oldest.newest) {
			oldest = s
		}
	}
	if oldest.detected {
		h.detected--
	}
	h.order = slices.DeleteFunc(h.order, func(s *durationSet) bool { return s == oldest })
	delete(h.sets, oldest.Attributes.Equivalent())
}

// exemplar adds a span to the exemplars, which are the longest and the newest one.
func exemplar(
	kept []metricdata.Exemplar[float64], span trace.SpanContext, at time.Time, v float64,
) []metricdata.Exemplar[float64] {
	e := exemplarOf(span, at, v)
	if len(kept) == 0 || v >= kept[0].Value {
		return append([]metricdata.Exemplar[float64]{e}, kept[:min(1, len(kept))]...)
	}
	return append(kept[:1:1], e)
}

func (d *Durations) emit(b *builder) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	b.histogram(&semconv.ModelLoadDuration, d.loads.points(b.time))
	b.histogram(&semconv.TrainingEpochDuration, d.epochs.points(b.time))
}

// points returns copies of the data points, as of the time at.
func (h *histogram) points(at time.Time) (all []metricdata.HistogramDataPoint[float64]) {
	if h.ended.After(at) { // the window ended after the snapshot was taken
		at = h.ended
	}
	for _, p := range h.order {
		point := p.HistogramDataPoint
		point.StartTime, point.Time = startBefore(p.StartTime, at), at
		point.BucketCounts = append([]uint64(nil), p.BucketCounts...)
		all = append(all, point)
	}
	return all
}

func (b *builder) histogram(m *semconv.Metric, points []metricdata.HistogramDataPoint[float64]) {
	if len(points) == 0 {
		return
	}
	data := metricdata.Histogram[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality}
	b.done = append(b.done, metricdata.Metrics{Name: m.Name, Description: m.Description, Unit: m.Unit, Data: data})
}

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
	waited := exemplarOf(span, r.Wall(r.End.Mono), r.Storage.Seconds())
	s.list = append(s.list, slowWindow{s.added, r.Job, r.PID, r.GPUIDs, waited})
}

func exemplarOf(span trace.SpanContext, at time.Time, v float64) metricdata.Exemplar[float64] {
	traceID, spanID := span.TraceID(), span.SpanID()
	return metricdata.Exemplar[float64]{Time: at, Value: v, TraceID: traceID[:], SpanID: spanID[:]}
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
