package emit

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// at sets the time of the next points, and returns the seconds since the last reading; 0 without one.
func (b *builder) at(now, last sample.Stamp) float64 {
	b.time = now.Wall
	if last.Wall.IsZero() {
		return 0
	}
	return (now.Mono - last.Mono).Seconds()
}

// pressures emits the pressure of the host. The pressure of a job is on its spans.
func (m *Metrics) pressures(b *builder, now *sample.Snapshot) {
	b.at(now.Pressures.At, m.last.Pressures.At)
	some := attribute.NewSet(semconv.SystemLinuxPressureStallTypeSome)
	full := attribute.NewSet(semconv.SystemLinuxPressureStallTypeFull)
	for _, p := range now.Pressures.Pressures {
		metric := stallTime(p.Resource)
		if p.Scope != sample.HostScope || metric == nil {
			continue
		}
		b.float(metric, p.Some.Seconds(), some)
		if p.Resource != sample.CPU { // for a whole machine the kernel always prints 0
			b.float(metric, p.Full.Seconds(), full)
		}
	}
}

func stallTime(r sample.Resource) *semconv.Metric {
	switch r {
	case sample.CPU:
		return &semconv.SystemLinuxPressureCPUStallTime
	case sample.Memory:
		return &semconv.SystemLinuxPressureMemoryStallTime
	case sample.IO:
		return &semconv.SystemLinuxPressureIOStallTime
	}
	return nil
}

// cores emits every online core. It corrects times of now that went back.
func (m *Metrics) cores(b *builder, now *sample.Snapshot) {
	elapsed := b.at(now.Cores.At, m.last.Cores.At)
	for i := range now.Cores.Cores {
		core := &now.Cores.Cores[i]
		number, err := strconv.Atoi(strings.TrimPrefix(core.Name, "cpu"))
		if err != nil {
			continue
		}
		sets := m.sets.cores.get(number, newCoreSets)
		last := find(m.last.Cores.Cores, func(x *sample.Core) bool { return x.Name == core.Name })
		restarted := last != nil && core.Busy() < last.Busy()
		if last != nil && !restarted { // the kernel may correct idle time downwards
			core.IOWait, core.Idle = max(core.IOWait, last.IOWait), max(core.Idle, last.Idle)
		}
		b.start = m.start(core.Name, now.Boot, m.last.Cores.At.Wall, restarted)
		var before [7]time.Duration
		if last != nil {
			before = modes(last)
		}
		for k, spent := range modes(core) {
			b.float(&semconv.SystemCPUTime, spent.Seconds(), sets[k])
			if last != nil && elapsed > 0 && !restarted {
				b.float(&semconv.SystemCPUUtilization, min(1, max(0, spent-before[k]).Seconds()/elapsed), sets[k])
			}
		}
	}
	b.start = now.Boot
}

// modes returns the times in the order of newCoreSets.
func modes(c *sample.Core) [7]time.Duration {
	return [7]time.Duration{c.User, c.Nice, c.System, c.Idle, c.IOWait, c.IRQ + c.SoftIRQ, c.Steal}
}

// processes emits the processes of every job once, with those that ended since the last collection. After the end of
// the last job there are no new readings, and nothing is emitted.
func (m *Metrics) processes(b *builder, now *sample.Snapshot) {
	if now.Jobs.At.Mono == m.last.Jobs.At.Mono {
		return
	}
	b.at(now.Jobs.At, m.last.Jobs.At)
	members := slices.Concat(now.Jobs.Processes, now.Ended)
	emitted := make(map[int]bool, len(members))
	for i := range members {
		p := &members[i]
		if !p.HasIO || emitted[p.PID] {
			continue
		}
		emitted[p.PID] = true
		if !now.Boot.IsZero() {
			b.start = now.Boot.Add(p.Started)
		}
		pid := semconv.ProcessPIDKey.Int(p.PID)
		b.int(&semconv.ProcessDiskIO, p.ReadBytes, attribute.NewSet(pid, semconv.DiskIODirectionRead))
		b.int(&semconv.ProcessDiskIO, p.WriteBytes, attribute.NewSet(pid, semconv.DiskIODirectionWrite))
	}
	b.start = now.Boot
}

// start returns the start time of a counter: boot, or after a restart the last reading before it. Only cores use it, so
// few names are kept.
func (m *Metrics) start(id string, boot, before time.Time, restarted bool) time.Time {
	if restarted && (len(m.began) < maxBegan || !m.began[id].IsZero()) {
		m.began[id] = before
	}
	if at, ok := m.began[id]; ok {
		return at
	}
	return boot
}

func find[T any](all []T, is func(*T) bool) *T {
	for i := range all {
		if is(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// Own is what this program reports of its own work.
type Own struct {
	Since   time.Time // it counts from then on
	Panics  uint64    // that were caught
	Late    uint64    // readings
	Lost    uint64    // spans and log records
	Refused int       // parts of the evidence that the kernel refuses now
}

// own emits what this program reports of itself. A replay has nothing to report.
func (m *Metrics) own(b *builder) {
	if m.Own == nil || b.time.IsZero() {
		return
	}
	own := m.Own()
	b.start = own.Since
	none := *attribute.EmptySet()
	b.int(&semconv.Panics, own.Panics, none)
	b.int(&semconv.ReadingLate, own.Late, none)
	b.int(&semconv.ExportDropped, own.Lost, none)
	b.int(&semconv.KernelPartRefused, uint64(own.Refused), none)
}
