package emit

import (
	"fmt"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// ScopeName names everything that Stallspan emits.
const ScopeName = "github.com/stallspan/stallspan"

// Scope returns the instrumentation scope of all signals.
func Scope(version string) instrumentation.Scope {
	return instrumentation.Scope{Name: ScopeName, Version: version, SchemaURL: semconv.SchemaURL}
}

// Metrics converts snapshots to metrics. It keeps the last snapshot, because utilization, await and queue depth are
// differences over the collection interval. It is not safe for concurrent use.
type Metrics struct {
	scope     instrumentation.Scope
	disabled  []string // names of metrics
	last      sample.Snapshot
	began     map[string]time.Time      // of a core whose counters restarted
	loops     map[string]uint64         // operations of a loop device when it was first seen
	counted   cache[string, gpuCounted] // by GPU.ID
	drive     cache[driveKey, driveState]
	program   time.Time // start of the program or the recording, and of what it counts
	sets      sets
	jobs      []JobMetrics            // of the last collection
	sizes     map[*semconv.Metric]int // points of each metric at the last collection
	seenSlow  uint64                  // slowWindows.added at the last collection
	Durations *Durations              // nil for none
	Own       func() Own              // nil for none
	Nameless  bool                    // the time of GPUs is that of all jobs together, and there are no metrics of jobs

	// RepeatSlow is how long the spans of slow windows are exemplars of the time of their job. The zero value makes them
	// that for one collection; several servers that scrape the same metrics need more.
	RepeatSlow time.Duration
}

// maxBegan bounds Metrics.began.
const maxBegan = 16384

// NewMetrics returns the metrics of a program version, without the disabled ones.
func NewMetrics(version string, disabled ...string) *Metrics {
	return &Metrics{
		scope:     Scope(version),
		disabled:  disabled,
		began:     map[string]time.Time{},
		sizes:     map[*semconv.Metric]int{},
		Durations: &Durations{},
	}
}

// CheckMetric returns an error if there is no metric of that name.
func CheckMetric(name string) error {
	if slices.ContainsFunc(semconv.Metrics, func(m semconv.Metric) bool { return m.Name == name }) {
		return nil
	}
	return fmt.Errorf("there is no metric %.60q: stallspan docs metrics lists them", name)
}

// Collect returns the metrics of a snapshot. Readings that the machine lacks are absent. Differences are absent at the
// first collection. Collect keeps and changes the snapshot: the caller must not use it afterwards.
func (m *Metrics) Collect(now sample.Snapshot) metricdata.ScopeMetrics {
	b := &builder{start: now.Boot, sizes: m.sizes}
	if m.program.IsZero() && !now.GPUs.At.Wall.IsZero() {
		m.program = now.GPUs.At.Wall.Add(-now.GPUs.At.Mono)
	}
	m.disks(b, &now)
	m.latencies(map[string]*builder{"": b}, &now)
	m.mounts(b, &now)
	m.pressures(b, &now)
	m.cores(b, &now)
	m.processes(b, &now)
	m.gpus(b, &now)
	m.times(b, &now)
	m.drives(b, &now)
	b.time = newest(&now)
	m.Durations.emit(b)
	m.own(b)
	m.last = now
	return metricdata.ScopeMetrics{Scope: m.scope, Metrics: m.enabled(b.metrics())}
}

// enabled leaves out the disabled metrics.
func (m *Metrics) enabled(all []metricdata.Metrics) []metricdata.Metrics {
	return slices.DeleteFunc(all, func(x metricdata.Metrics) bool { return slices.Contains(m.disabled, x.Name) })
}

// builder collects points by metric, in the order in which the metrics first appear.
type builder struct {
	start  time.Time               // of counters
	time   time.Time               // of the next points
	sizes  map[*semconv.Metric]int // capacities
	order  []aggregation
	ints   map[*semconv.Metric]*series[int64]
	floats map[*semconv.Metric]*series[float64]
	done   []metricdata.Metrics

	exponentials *exponentials // of the one such metric; nil for none
}

// exponentials are the data points of an exponential histogram.
type exponentials struct {
	of     *semconv.Metric
	points []metricdata.ExponentialHistogramDataPoint[float64]
}

func (b *builder) exponential(m *semconv.Metric, p metricdata.ExponentialHistogramDataPoint[float64]) {
	if b.exponentials == nil {
		b.exponentials = &exponentials{of: m}
		b.order = append(b.order, b.exponentials)
	}
	b.exponentials.points = append(b.exponentials.points, p)
}

func (h *exponentials) metric(map[*semconv.Metric]int) metricdata.Metrics {
	return metricdata.Metrics{
		Name: h.of.Name, Description: h.of.Description, Unit: h.of.Unit,
		Data: metricdata.ExponentialHistogram[float64]{
			DataPoints: h.points, Temporality: metricdata.CumulativeTemporality,
		},
	}
}

type aggregation interface {
	metric(sizes map[*semconv.Metric]int) metricdata.Metrics
}

type series[N int64 | float64] struct {
	of     *semconv.Metric
	points []metricdata.DataPoint[N]
}

func (b *builder) int(m *semconv.Metric, v uint64, attrs attribute.Set) {
	b.ints = point(b, b.ints, m, int64(min(v, math.MaxInt64)), attrs)
}

func (b *builder) float(m *semconv.Metric, v float64, attrs attribute.Set) {
	b.floats = point(b, b.floats, m, v, attrs)
}

// number emits a value as the metric has it.
func (b *builder) number(m *semconv.Metric, v float64, attrs attribute.Set) {
	if m.Int {
		b.int(m, toCount(v), attrs)
	} else {
		b.float(m, v, attrs)
	}
}

func point[N int64 | float64](
	b *builder, all map[*semconv.Metric]*series[N], m *semconv.Metric, v N, attrs attribute.Set,
) map[*semconv.Metric]*series[N] {
	s := all[m]
	if s == nil {
		if all == nil {
			all = make(map[*semconv.Metric]*series[N], len(semconv.Metrics))
		}
		s = &series[N]{of: m, points: make([]metricdata.DataPoint[N], 0, b.sizes[m])}
		all[m] = s
		b.order = append(b.order, s)
	}
	p := metricdata.DataPoint[N]{Attributes: attrs, Time: b.time, Value: v}
	if m.Kind != semconv.Gauge {
		p.StartTime = startBefore(b.start, b.time)
	}
	s.points = append(s.points, p)
	return all
}

// startBefore returns start, or an unknown time if it is not before the point: the clock was set in between.
func startBefore(start, at time.Time) time.Time {
	if start.Before(at) {
		return start
	}
	return time.Time{}
}

func (b *builder) metrics() []metricdata.Metrics {
	out := make([]metricdata.Metrics, 0, len(b.order)+len(b.done))
	for _, s := range b.order {
		out = append(out, s.metric(b.sizes))
	}
	return append(out, b.done...)
}

func (s *series[N]) metric(sizes map[*semconv.Metric]int) metricdata.Metrics {
	sizes[s.of] = len(s.points)
	m := metricdata.Metrics{Name: s.of.Name, Description: s.of.Description, Unit: s.of.Unit}
	switch s.of.Kind {
	case semconv.Gauge:
		m.Data = metricdata.Gauge[N]{DataPoints: s.points}
	default:
		m.Data = metricdata.Sum[N]{
			DataPoints:  s.points,
			Temporality: metricdata.CumulativeTemporality,
			IsMonotonic: s.of.Kind == semconv.Counter,
		}
	}
	return m
}

// newest returns the time of the newest reading.
func newest(now *sample.Snapshot) (at time.Time) {
	for _, s := range readings(now) {
		if s.At.Wall.After(at) {
			at = s.At.Wall
		}
	}
	return at
}

// present returns the time of the newest reading on the monotonic clock. A machine may have no GPU, or no job.
func present(now *sample.Snapshot) (at time.Duration) {
	for _, s := range readings(now) {
		at = max(at, s.At.Mono)
	}
	return at
}

func readings(now *sample.Snapshot) [7]*sample.Sample {
	return [...]*sample.Sample{&now.Mounts, &now.Disks, &now.Pressures, &now.Cores, &now.Jobs, &now.GPUs, &now.Drives}
}

// maxKept bounds the attribute sets of one kind that are kept between collections.
const maxKept = 1024

// sets caches the attribute sets. To sort and hash them for every point would be most of the cost of a collection.
type sets struct {
	disks  cache[string, diskSets] // by name
	cores  cache[int, coreSets]    // by number
	gpus   cache[gpuName, gpuSets]
	drives cache[driveName, driveSets]
	times  cache[string, timeSets] // by GPU
}

// cache keeps one value for each key, zero at first without create. The zero cache is ready. When it is full, it is
// emptied.
type cache[K comparable, V any] struct{ kept map[K]*V }

func (c *cache[K, V]) get(key K, create func(K) V) *V {
	if v := c.kept[key]; v != nil {
		return v
	}
	if c.kept == nil || len(c.kept) >= maxKept {
		c.kept = map[K]*V{}
	}
	v := new(V)
	if create != nil {
		*v = create(key)
	}
	c.kept[key] = v
	return v
}

type diskSets struct{ plain, read, write, flush, discard attribute.Set }

// of returns the attributes of a kind of operation.
func (s *diskSets) of(o sample.Operation) *attribute.Set {
	switch o {
	case sample.ReadOperation:
		return &s.read
	case sample.WriteOperation:
		return &s.write
	case sample.FlushOperation:
		return &s.flush
	}
	return &s.discard
}

func newDiskSets(disk string) diskSets {
	name := semconv.SystemDeviceNameKey.String(UTF8(disk))
	return diskSets{
		plain: attribute.NewSet(name),
		read:  attribute.NewSet(name, semconv.DiskIODirectionRead),
		write: attribute.NewSet(name, semconv.DiskIODirectionWrite),
		// OpenTelemetry has no values for these two, and allows others.
		flush:   attribute.NewSet(name, semconv.DiskIODirectionKey.String(string(sample.FlushOperation))),
		discard: attribute.NewSet(name, semconv.DiskIODirectionKey.String(string(sample.DiscardOperation))),
	}
}

// coreSets has a set for each mode, in the order of modes.
type coreSets [7]attribute.Set

func newCoreSets(number int) (s coreSets) {
	for i, mode := range [...]attribute.KeyValue{
		semconv.CPUModeUser, semconv.CPUModeNice, semconv.CPUModeSystem, semconv.CPUModeIdle, semconv.CPUModeIOWait,
		semconv.CPUModeInterrupt, semconv.CPUModeSteal,
	} {
		s[i] = attribute.NewSet(semconv.CPULogicalNumberKey.Int(number), mode)
	}
	return s
}
