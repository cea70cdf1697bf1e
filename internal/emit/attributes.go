package emit

import (
	"maps"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// list collects attributes. Its methods leave out unknown values.
type list []attribute.KeyValue

func (l *list) add(kv attribute.KeyValue) { *l = append(*l, kv) }

func (l *list) text(key attribute.Key, v string) {
	if v != "" {
		l.add(key.String(UTF8(v)))
	}
}

func (l *list) texts(key attribute.Key, v []string) {
	if len(v) > 0 {
		valid := make([]string, len(v))
		for i := range v {
			valid[i] = UTF8(v[i])
		}
		l.add(key.StringSlice(valid))
	}
}

// UTF8 replaces invalid UTF-8. Names come from command lines and file systems, and protobuf refuses a whole batch for
// one invalid byte. All text is repaired here, where it becomes a span, a metric or a log record.
func UTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// Attributes returns a report as attributes of the registry.
func Attributes(r *window.Report) []attribute.KeyValue {
	l := make(list, 0, 32)
	l.identity(r)
	l.add(semconv.WindowSourceKey.String(string(r.Source)))
	if r.Source == window.Detected {
		l.add(semconv.WindowConfidenceKey.Float64(r.Confidence))
	}
	l.text(semconv.WindowScopeKey, string(r.Scope))
	if r.Unfinished {
		l.add(semconv.WindowUnfinishedKey.Bool(true))
	}
	if r.Interrupted {
		l.add(semconv.WindowInterruptedKey.Bool(true))
	}
	if r.Kind == window.ModelLoad {
		l.load(r)
	}
	l.steps(r)
	l.texts(semconv.GPUIDsKey, r.GPUIDs)
	l.verdict(r)
	l.ledger(r)
	l.disks(r)
	l.texts(semconv.MountPointsKey, mountPoints(r))
	if r.Pressure != nil {
		l.add(semconv.PressureIOSomeTimeKey.Float64(r.Pressure.Some.Seconds()))
		l.add(semconv.PressureIOFullTimeKey.Float64(r.Pressure.Full.Seconds()))
	}
	l.custom(r)
	return l
}

// identity adds the kind and the names of the window.
func (l *list) identity(r *window.Report) {
	l.add(semconv.WindowKindKey.String(string(r.Kind)))
	if r.Kind != window.Epoch && r.Kind != window.ModelLoad {
		l.text(semconv.WindowNameKey, r.Name)
	}
	if r.Kind == window.ModelLoad {
		l.text(semconv.ModelNameKey, r.Model)
	}
	l.text(semconv.TrainingRunNameKey, r.Run)
	if r.Kind == window.Epoch && r.HasEpoch {
		l.add(semconv.TrainingEpochIndexKey.Int(r.Epoch))
	}
}

// custom adds the attributes that the program gave its window. It leaves out names of ours, and "error", which some
// backends treat as a failed span.
func (l *list) custom(r *window.Report) {
	for _, key := range slices.Sorted(maps.Keys(r.Attributes)) {
		if key != "error" && key != "" && !strings.HasPrefix(key, "stallspan.") {
			l.add(attribute.String(UTF8(key), UTF8(r.Attributes[key])))
		}
	}
}

// load adds what a model load read, and the share that came from the page cache.
func (l *list) load(r *window.Report) {
	l.text(semconv.FilePathKey, r.Path)
	if r.Load.Size > 0 {
		l.add(semconv.ModelSizeKey.Int64(int64(min(r.Load.Size, math.MaxInt64))))
	}
	if r.Load.HasHit {
		l.add(semconv.PageCacheHitRatioKey.Float64(r.Load.Hit))
	}
}

// steps adds the steps of an epoch.
func (l *list) steps(r *window.Report) {
	if r.Steps == nil {
		return
	}
	l.add(semconv.TrainingStepPeriodKey.Float64(r.Steps.Period.Seconds()))
	if r.Steps.Count > 0 {
		l.add(semconv.TrainingStepCountKey.Int(r.Steps.Count))
	}
	l.add(semconv.TrainingStepConfidenceKey.Float64(r.Steps.Confidence))
}

func (l *list) verdict(r *window.Report) {
	l.add(semconv.VerdictKey.String(string(r.Verdict)))
	l.text(semconv.FindingKey, explain.Finding(r))
	l.text(semconv.RemedyKey, explain.Remedy(r))
	l.add(semconv.SlowKey.Bool(r.Slow))
	l.text(semconv.SlownessReasonKey, r.SlowReason)
	if r.Baseline != nil {
		l.add(semconv.BaselineP95Key.Float64(r.Baseline.P95.Seconds()))
	}
	if r.Speedup > 0 {
		l.add(semconv.SpeedupEstimateKey.Float64(r.Speedup))
	}
	if r.Uncertainty > 0.01 {
		l.add(semconv.UncertaintyRatioKey.Float64(r.Uncertainty))
	}
}

func (l *list) ledger(r *window.Report) {
	if !r.Split {
		return
	}
	if len(r.GPUIDs) > 0 {
		l.add(semconv.WindowGPUBusyTimeKey.Float64(r.Busy.Seconds()))
		l.add(semconv.GPUBusyRatioKey.Float64(r.BusyRatio()))
	} else if !r.Unattributed() {
		l.add(semconv.ProcessOnCPUTimeKey.Float64(r.CPU.Seconds()))
	}
	if r.StallKnown() {
		l.stall(r)
	}
	l.text(semconv.WindowEvidenceKey, string(r.Evidence))
}

// stall adds what the time was lost to.
func (l *list) stall(r *window.Report) {
	if len(r.GPUIDs) > 0 {
		l.add(semconv.StallCPUTimeKey.Float64(r.CPU.Seconds()))
	}
	if r.Ready > 0 {
		l.add(semconv.StallCPUReadyTimeKey.Float64(r.Ready.Seconds()))
	}
	l.add(semconv.StallStorageTimeKey.Float64(r.Storage.Seconds()))
	l.add(semconv.StallOtherTimeKey.Float64(r.Other.Seconds()))
	if r.Network > 0 {
		l.add(semconv.StallNetworkTimeKey.Float64(r.Network.Seconds()))
	}
	l.texts(semconv.StallOtherReasonsKey, explain.Reasons(r))
}

func (l *list) disks(r *window.Report) {
	if len(r.Disks) == 0 {
		return
	}
	var names []string
	var sum window.DiskUse
	busy := false // of any disk
	for i := range r.Disks {
		d := &r.Disks[i]
		names = append(names, d.Name)
		sum.ReadBytes += d.ReadBytes
		sum.ReadOperations += d.ReadOperations
		sum.ReadTime += d.ReadTime
		sum.WriteBytes += d.WriteBytes
		sum.WriteOperations += d.WriteOperations
		sum.WriteTime += d.WriteTime
		sum.QueueDepth += d.QueueDepth
		sum.BusyRatio = max(sum.BusyRatio, d.BusyRatio)
		sum.Lacks |= d.Lacks
		busy = busy || d.Lacks&sample.LacksIOTicks == 0
	}
	l.texts(semconv.DiskNamesKey, names)
	l.add(semconv.DiskReadBytesKey.Int64(int64(sum.ReadBytes)))
	l.add(semconv.DiskReadOperationsKey.Int64(int64(sum.ReadOperations)))
	if await, ok := sum.Await(true); ok {
		l.add(semconv.DiskReadAwaitKey.Float64(await))
	}
	l.add(semconv.DiskWriteBytesKey.Int64(int64(sum.WriteBytes)))
	l.add(semconv.DiskWriteOperationsKey.Int64(int64(sum.WriteOperations)))
	if await, ok := sum.Await(false); ok {
		l.add(semconv.DiskWriteAwaitKey.Float64(await))
	}
	if sum.Lacks&sample.LacksQueue == 0 {
		l.add(semconv.WindowDiskQueueDepthKey.Float64(sum.QueueDepth))
	}
	if busy {
		l.add(semconv.DiskBusyRatioKey.Float64(sum.BusyRatio))
	}
}
