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

// at sets the time of the points that follow, and gives the seconds since the reading before; 0 where there was none.
func (b *builder) at(now, last sample.Stamp) float64 {
	b.time = now.Wall
	if last.Wall.IsZero() {
		return 0
	}
	return (now.Mono - last.Mono).Seconds()
}

// pressures tells of the whole host; a job's own pressure is on its spans.
func (m *Metrics) pressures(b *builder, now *sample.Snapshot) {
	b.at(now.Pressures.At, m.last.Pressures.At)
	some, full := attribute.NewSet(semconv.PressureStallTypeSome), attribute.NewSet(semconv.PressureStallTypeFull)
	for _, p := range now.Pressures.Pressures {
		metric := stallTime(p.Resource)
		if p.Scope != sample.HostScope || metric == nil {
			continue
		}
		b.float(metric, p.Some.Seconds(), some)
		if p.Resource != sample.CPU { // of a whole machine the kernel prints it as 0 and means nothing by it
			b.float(metric, p.Full.Seconds(), full)
		}
	}
}

func stallTime(r sample.Resource) *semconv.Metric {
	switch r {
	case sample.CPU:
		return &semconv.PressureCPUStallTime
	case sample.Memory:
		return &semconv.PressureMemoryStallTime
	case sample.IO:
		return &semconv.PressureIOStallTime
	}
	return nil
}

// cores tells of every core that is online. It takes back no time in now that was told before.
func (m *Metrics) cores(b *builder, now *sample.Snapshot) {
	elapsed := b.at(now.Cores.At, m.last.Cores.At)
	for i := range now.Cores.Cores {
		core := &now.Cores.Cores[i]
		number, err := strconv.Atoi(strings.TrimPrefix(core.Name, "cpu"))
		if err != nil {
			continue
		}
		of := m.sets.cores.of(number, newCoreSets)
		last := find(m.last.Cores.Cores, func(x *sample.Core) bool { return x.Name == core.Name })
		again := last != nil && core.Busy() < last.Busy()
		if last != nil && !again { // the kernel takes back idle time that it counted too early
			core.IOWait, core.Idle = max(core.IOWait, last.IOWait), max(core.Idle, last.Idle)
		}
		b.start = m.start(core.Name, now.Boot, m.last.Cores.At.Wall, again)
		var before [7]time.Duration
		if last != nil {
			before = modes(last)
		}
		for k, spent := range modes(core) {
			b.float(&semconv.SystemCPUTime, spent.Seconds(), of[k])
			if last != nil && elapsed > 0 && !again {
				b.float(&semconv.SystemCPUUtilization, min(1, max(0, spent-before[k]).Seconds()/elapsed), of[k])
			}
		}
	}
	b.start = now.Boot
}

// modes are in the order of newCoreSets.
func modes(c *sample.Core) [7]time.Duration {
	return [7]time.Duration{c.User, c.Nice, c.System, c.Idle, c.IOWait, c.IRQ + c.SoftIRQ, c.Steal}
}

// processes tells of the members of every job, those that ended since the last collection too, and once where two jobs
// share one. After the last job has ended nothing new is read, and nothing is told.
func (m *Metrics) processes(b *builder, now *sample.Snapshot) {
	if now.Jobs.At.Mono == m.last.Jobs.At.Mono {
		return
	}
	b.at(now.Jobs.At, m.last.Jobs.At)
	members := slices.Concat(now.Jobs.Processes, now.Ended)
	told := make(map[int]bool, len(members))
	for i := range members {
		p := &members[i]
		if !p.HasIO || told[p.PID] {
			continue
		}
		told[p.PID] = true
		if !now.Boot.IsZero() {
			b.start = now.Boot.Add(p.Started)
		}
		of := m.sets.processes.of(p.PID, newProcessSets)
		b.int(&semconv.ProcessDiskIO, p.ReadBytes, of.read)
		b.int(&semconv.ProcessDiskIO, p.WriteBytes, of.write)
	}
	b.start = now.Boot
}

// start is when a counter began: at boot, or, once it was seen to begin again, at the reading before that. Cores are
// numbered, so few names are ever kept.
func (m *Metrics) start(id string, boot, before time.Time, again bool) time.Time {
	if again && (len(m.began) < mostBegan || !m.began[id].IsZero()) {
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
