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
	names := map[sample.Resource]semconv.Metric{
		sample.CPU:    semconv.PressureCPUStallTime,
		sample.Memory: semconv.PressureMemoryStallTime,
		sample.IO:     semconv.PressureIOStallTime,
	}
	for _, p := range now.Pressures.Pressures {
		metric, known := names[p.Resource]
		if p.Scope != sample.HostScope || !known {
			continue
		}
		b.float(metric, p.Some.Seconds(), semconv.PressureStallTypeSome)
		if p.Resource != sample.CPU { // of a whole machine the kernel prints it as 0 and means nothing by it
			b.float(metric, p.Full.Seconds(), semconv.PressureStallTypeFull)
		}
	}
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
		id := semconv.CPULogicalNumberKey.Int(number)
		last := find(m.last.Cores.Cores, func(x *sample.Core) bool { return x.Name == core.Name })
		again := last != nil && core.Busy() < last.Busy()
		if last != nil && !again { // the kernel takes back idle time that it counted too early
			core.IOWait, core.Idle = max(core.IOWait, last.IOWait), max(core.Idle, last.Idle)
		}
		b.start = m.start(core.Name, now.Boot, m.last.Cores.At.Wall, again)
		times := modes(core)
		for k, mode := range times {
			b.float(semconv.SystemCPUTime, mode.spent.Seconds(), id, mode.mode)
			if last != nil && elapsed > 0 && !again {
				grown := max(0, mode.spent-modes(last)[k].spent)
				b.float(semconv.SystemCPUUtilization, min(1, grown.Seconds()/elapsed), id, mode.mode)
			}
		}
	}
	b.start = now.Boot
}

type modeTime struct {
	mode  attribute.KeyValue
	spent time.Duration
}

func modes(c *sample.Core) [7]modeTime {
	return [7]modeTime{
		{semconv.CPUModeUser, c.User},
		{semconv.CPUModeNice, c.Nice},
		{semconv.CPUModeSystem, c.System},
		{semconv.CPUModeIdle, c.Idle},
		{semconv.CPUModeIOWait, c.IOWait},
		{semconv.CPUModeInterrupt, c.IRQ + c.SoftIRQ},
		{semconv.CPUModeSteal, c.Steal},
	}
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
		pid := semconv.ProcessPIDKey.Int(p.PID)
		b.int(semconv.ProcessDiskIO, p.ReadBytes, pid, semconv.DiskIODirectionRead)
		b.int(semconv.ProcessDiskIO, p.WriteBytes, pid, semconv.DiskIODirectionWrite)
	}
	b.start = now.Boot
}

// start is when a counter began: at boot, or, once it was seen to begin again, at the reading before that. Cores and
// GPUs are numbered, so few names are ever kept.
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
