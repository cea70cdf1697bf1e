package emit_test

import (
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/sample"
)

var booted = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// at is a moment so long after boot.
func at(d time.Duration) sample.Stamp { return sample.Stamp{Mono: d, Wall: booted.Add(d)} }

const (
	ms  = time.Millisecond
	mib = 1 << 20
)

// snapshots are two looks at one machine, ten seconds apart.
func snapshots() (first, second sample.Snapshot) {
	hour, later := time.Hour, time.Hour+10*time.Second
	every := sample.HasDiscards | sample.HasFlushes
	first = sample.Snapshot{
		Boot: booted,
		Disks: sample.Sample{At: at(hour), Disks: []sample.Disk{
			{Name: "vda", Leaf: true, ReadIOs: 1000, ReadMerges: 10, ReadBytes: 4 * mib, ReadTicks: 500 * ms,
				WriteIOs: 100, WriteMerges: 5, WriteBytes: mib, WriteTicks: 200 * ms, InFlight: 3, IOTicks: 400 * ms,
				TimeInQueue: 700 * ms, DiscardIOs: 7, DiscardBytes: mib, DiscardTicks: 5 * ms, FlushIOs: 8, FlushTicks: 30 * ms,
				Has: every},
			{Name: "usb", Leaf: true, ReadIOs: 5000, ReadBytes: 20 * mib, ReadTicks: 9 * time.Second, IOTicks: 9 * time.Second,
				TimeInQueue: 9 * time.Second},
			{Name: "loop0", Has: every}, // never used
		}},
		Pressures: sample.Sample{At: at(hour), Pressures: []sample.Pressure{
			{Resource: sample.IO, Some: 30 * time.Second, Full: 20 * time.Second},
			{Resource: sample.Memory, Some: time.Second, Full: 500 * ms},
			{Resource: sample.CPU, Some: 7 * time.Second},
			{Scope: "/job", Resource: sample.IO, Some: time.Second},
		}},
		Cores: sample.Sample{At: at(hour), Cores: []sample.Core{
			{Name: "cpu0", User: 10 * time.Second, Idle: 3000 * time.Second, IOWait: 9 * time.Second, IRQ: 10 * ms,
				SoftIRQ: 20 * ms},
			{Name: "strange"},
		}},
		Jobs: sample.Sample{At: at(hour), Processes: []sample.Process{
			{PID: 42, Job: "run", ReadBytes: mib, WriteBytes: 4096, HasIO: true, Started: 3500 * time.Second},
			{PID: 43, Job: "run", Started: 3501 * time.Second}, // of another user: its bytes are unknown
			{PID: 42, Job: "other", ReadBytes: mib, HasIO: true, Started: 3500 * time.Second},
		}},
		GPUs: sample.Sample{At: at(hour), GPUs: []sample.GPU{
			{ID: "GPU-1", Name: "fast one", Busy: 100 * time.Second}, {ID: "GPU-2", Busy: 50 * time.Second},
		}},
	}
	second = first.Clone()
	for _, s := range []*sample.Sample{&second.Disks, &second.Pressures, &second.Cores, &second.Jobs, &second.GPUs} {
		s.At = at(later)
	}
	vda, usb := &second.Disks.Disks[0], &second.Disks.Disks[1]
	vda.ReadIOs, vda.ReadBytes, vda.ReadTicks = 3000, 12*mib, 4500*ms
	vda.IOTicks, vda.TimeInQueue, vda.InFlight = 2900*ms, 5700*ms, 1
	*usb = sample.Disk{Name: "usb", Leaf: true, ReadIOs: 10, ReadBytes: 40960, ReadTicks: 20 * ms, IOTicks: 20 * ms,
		TimeInQueue: 20 * ms}
	second.Pressures.Pressures[0].Some = 34 * time.Second
	second.Cores.Cores[0] = sample.Core{Name: "cpu0", User: 14 * time.Second, Idle: 3005 * time.Second, IOWait: 8990 * ms,
		IRQ: 10 * ms, SoftIRQ: 20 * ms}
	second.Jobs.Processes[0].ReadBytes = 9 * mib
	normalize(&first, &second)
	second.GPUs.GPUs[0].Busy, second.GPUs.GPUs[1].Busy = 107*time.Second, time.Second // the second one's driver came back
	return first, second
}

// normalize does what the source of disks does with its readings.
func normalize(snapshots ...*sample.Snapshot) {
	var normalizer sample.DiskNormalizer
	for _, s := range snapshots {
		normalizer.Normalize(&s.Disks)
	}
}

// TestMetrics writes a first collection, which has no rates, and a second one: usb was pulled out and put back, so its
// counters have a new start and no rate; cpu0's iowait went back, so it stays; what is not known is not there.
func TestMetrics(t *testing.T) {
	m := emit.NewMetrics("1.2.3")
	first, second := snapshots()
	checkText(t, "first", metricsText(m.Collect(first)))
	checkText(t, "second", metricsText(m.Collect(second)))
}

func TestMetricsOfNothing(t *testing.T) {
	m := emit.NewMetrics("")
	if scope := m.Collect(sample.Snapshot{}); len(scope.Metrics) != 0 {
		t.Errorf("empty machine: got %+v, want no metrics", scope.Metrics)
	}
}

// value finds a point by the attributes that are written in its line.
func value(t *testing.T, scope metricdata.ScopeMetrics, metric, attributes string) (float64, time.Time) {
	t.Helper()
	for _, m := range scope.Metrics {
		if m.Name != metric {
			continue
		}
		sum, ok := m.Data.(metricdata.Sum[float64])
		if !ok {
			t.Fatalf("%s is a %T", metric, m.Data)
		}
		for _, p := range sum.DataPoints {
			if attributesText(p.Attributes.ToSlice()) == attributes {
				return p.Value, p.StartTime
			}
		}
	}
	t.Fatalf("no %s with %s", metric, attributes)
	return 0, time.Time{}
}

// The kernel's 32-bit milliseconds begin again after 49.7 days of waiting: the sum goes on.
func TestTimesWrap(t *testing.T) {
	const wrap = time.Duration(1<<32) * ms
	m := emit.NewMetrics("")
	var normalizer sample.DiskNormalizer
	look := func(after, weighted time.Duration) (float64, time.Time) {
		disks := sample.Sample{At: at(after), Disks: []sample.Disk{
			{Name: "vda", ReadIOs: uint64(after / time.Second), TimeInQueue: weighted},
		}}
		normalizer.Normalize(&disks)
		scope := m.Collect(sample.Snapshot{Boot: booted, Disks: disks})
		return value(t, scope, "system.disk.weighted_io_time", `system.device.name="vda"`)
	}
	for i, step := range []struct{ raw, want time.Duration }{
		{wrap - time.Second, wrap - time.Second}, {time.Second, wrap + time.Second},
		{wrap - time.Second, 2*wrap - time.Second}, {0, 2 * wrap},
	} {
		got, start := look(time.Hour+time.Duration(i)*time.Second, step.raw)
		if got != step.want.Seconds() || !start.Equal(booted) {
			t.Errorf("look %d: %v s since %v, want %v", i, got, start, step.want)
		}
	}
}

// A disk that was away comes back with counters of its own, and one whose reading failed goes on as if nothing was.
func TestDiskComesBack(t *testing.T) {
	m := emit.NewMetrics("")
	var normalizer sample.DiskNormalizer
	look := func(after time.Duration, disks ...sample.Disk) metricdata.ScopeMetrics {
		s := sample.Sample{At: at(after), Disks: disks}
		normalizer.Normalize(&s)
		return m.Collect(sample.Snapshot{Boot: booted, Disks: s})
	}
	other := sample.Disk{Name: "other", ReadIOs: 1}
	look(time.Hour, other, sample.Disk{Name: "usb", ReadIOs: 100, IOTicks: time.Second},
		sample.Disk{Name: "vda", ReadIOs: 100})
	look(time.Hour+time.Second, other)
	scope := look(time.Hour+2*time.Second, other, sample.Disk{Name: "usb", ReadIOs: 5},
		sample.Disk{Name: "vda", ReadIOs: 200})
	for name, want := range map[string]time.Duration{"usb": time.Hour + time.Second, "vda": 0} {
		if _, start := value(t, scope, "system.disk.io_time",
			`system.device.name="`+name+`"`); !start.Equal(booted.Add(want)) {
			t.Errorf("%s counts since %v, want %v after boot", name, start, want)
		}
	}
}

// After the end of a job, its last readings are emitted exactly once.
func TestEndedJob(t *testing.T) {
	m := emit.NewMetrics("")
	snapshot, _ := snapshots()
	has := func() bool {
		for _, found := range m.Collect(snapshot.Clone()).Metrics {
			if found.Name == "process.disk.io" {
				return true
			}
		}
		return false
	}
	if !has() || has() {
		t.Error("points of an ended job: got another number than one, want each reading once")
	}
}

// Counters of disks that cannot be true are not emitted. The others of the same disk are.
func TestImpossibleDisks(t *testing.T) {
	m := emit.NewMetrics("")
	var normalizer sample.DiskNormalizer
	look := func(after time.Duration, disks ...sample.Disk) string {
		s := sample.Sample{At: at(after), Disks: disks}
		normalizer.Normalize(&s)
		return metricsText(m.Collect(sample.Snapshot{Boot: booted, Disks: s}))
	}
	second := func(n uint64) string {
		took := time.Duration(n) * ms
		return look(time.Hour+time.Duration(n)*time.Second,
			sample.Disk{Name: "untimed", ReadIOs: 41000 + 2000*n, ReadBytes: mib, WriteIOs: 2000, InFlight: 1<<32 - 1},
			sample.Disk{Name: "inexact", ReadIOs: 1000 + 2*n, ReadTicks: 90*ms + took, IOTicks: 500*time.Second + 1000*took,
				TimeInQueue: 95*ms + took})
	}
	second(0)
	second(1)
	text := second(2)
	for metric, disks := range map[string]string{
		"system.disk.operations": "untimed inexact", "system.disk.operation_time": "inexact", "system.disk.io_time": "",
		"system.disk.weighted_io_time": "inexact", "system.disk.pending_operations": "inexact",
		"stallspan.disk.utilization": "inexact", "stallspan.disk.queue.depth": "inexact", "stallspan.disk.await": "inexact",
	} {
		_, points, _ := strings.Cut(text, "\n"+metric+" [")
		points, _, _ = strings.Cut(points, "\n\n")
		for _, disk := range []string{"untimed", "inexact"} {
			if got, want := strings.Contains(points, `"`+disk+`"`), strings.Contains(disks, disk); got != want {
				t.Errorf("%s of %s: got %v, want %v in %q", metric, disk, got, want, points)
			}
		}
	}
	if want := "stallspan.disk.utilization [1] gauge\n  0.001 {"; !strings.Contains(text, want) {
		t.Errorf("got\n%s\nwant %s", text, want)
	}
}

// A loop device has metrics from its first operation after it was seen; one that is a disk of its own has them at once.
func TestLoops(t *testing.T) {
	var now sample.Snapshot
	now.Disks = sample.Sample{At: at(time.Hour), Disks: []sample.Disk{
		{Name: "loop0", ReadIOs: 10}, {Name: "loop1", ReadIOs: 10}, {Name: "loop2", ReadIOs: 10, Leaf: true},
	}}
	m := emit.NewMetrics("test")
	for round, want := range []string{"loop2", "loop1 loop2", "loop1 loop2"} {
		if round == 1 {
			now.Disks.Disks[1].ReadIOs++
		}
		now.Disks.At = at(time.Hour + time.Duration(round)*time.Second)
		text := metricsText(m.Collect(now.Clone()))
		for _, name := range []string{"loop0", "loop1", "loop2"} {
			if got := strings.Contains(text, name); got != strings.Contains(want, name) {
				t.Errorf("round %d: got metrics of %s %v, want those of %s", round, name, got, want)
			}
		}
	}
}
