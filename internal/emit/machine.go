package emit

import (
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

// disks tells of every device that did any I/O since boot.
func (m *Metrics) disks(b *builder, now *sample.Snapshot) {
	elapsed := b.at(now.Disks.At, m.last.Disks.At)
	for i := range now.Disks.Disks {
		d := &now.Disks.Disks[i]
		if d.Reads+d.Writes+d.Discards == 0 {
			continue
		}
		last := find(m.last.Disks.Disks, func(x *sample.Disk) bool { return x.Name == d.Name })
		b.start = m.start("disk "+d.Name, now.Boot, m.last.Disks.At.Wall, last != nil && restarted(d, last))
		b.disk(d)
		if last != nil && elapsed > 0 && !restarted(d, last) {
			b.diskRates(d, last, elapsed)
		}
	}
	m.forget("disk ", func(name string) bool {
		return find(now.Disks.Disks, func(x *sample.Disk) bool { return x.Name == name }) != nil
	})
	b.start = now.Boot
}

// restarted says that the device's counters began again: it was pulled out and put back, or another took its name.
func restarted(d, last *sample.Disk) bool {
	return d.Reads < last.Reads || d.Writes < last.Writes || d.ReadBytes < last.ReadBytes || d.WriteBytes < last.WriteBytes
}

func (b *builder) disk(d *sample.Disk) {
	name := semconv.SystemDeviceNameKey.String(d.Name)
	read, write := semconv.DiskIODirectionRead, semconv.DiskIODirectionWrite
	b.int(semconv.SystemDiskIO, d.ReadBytes, name, read)
	b.int(semconv.SystemDiskIO, d.WriteBytes, name, write)
	b.int(semconv.SystemDiskOperations, d.Reads, name, read)
	b.int(semconv.SystemDiskOperations, d.Writes, name, write)
	b.int(semconv.SystemDiskMerged, d.ReadsMerged, name, read)
	b.int(semconv.SystemDiskMerged, d.WritesMerged, name, write)
	b.float(semconv.SystemDiskOperationTime, d.ReadTime.Seconds(), name, read)
	b.float(semconv.SystemDiskOperationTime, d.WriteTime.Seconds(), name, write)
	b.float(semconv.SystemDiskIOTime, d.BusyTime.Seconds(), name)
	b.int(semconv.SystemDiskPendingOperations, d.InFlight, name)
	b.float(semconv.SystemDiskWeightedIOTime, d.WeightedTime.Seconds(), name)
	if d.Has&sample.HasDiscards != 0 {
		b.int(semconv.DiskDiscardOperations, d.Discards, name)
		b.int(semconv.DiskDiscardIO, d.DiscardBytes, name)
		b.float(semconv.DiskDiscardTime, d.DiscardTime.Seconds(), name)
	}
	if d.Has&sample.HasFlushes != 0 {
		b.int(semconv.DiskFlushOperations, d.Flushes, name)
		b.float(semconv.DiskFlushTime, d.FlushTime.Seconds(), name)
	}
}

// diskRates tells what iostat shows, over the collection interval. The kernel's busy time is sampled by jiffies and
// can run a little past the clock.
func (b *builder) diskRates(d, last *sample.Disk, elapsed float64) {
	name := semconv.SystemDeviceNameKey.String(d.Name)
	if d.BusyTime >= last.BusyTime {
		b.float(semconv.DiskUtilization, min(1, (d.BusyTime-last.BusyTime).Seconds()/elapsed), name)
	}
	if d.WeightedTime >= last.WeightedTime {
		b.float(semconv.DiskQueueDepth, (d.WeightedTime-last.WeightedTime).Seconds()/elapsed, name)
	}
	await := func(direction attribute.KeyValue, operations uint64, spent time.Duration) {
		if operations > 0 && spent >= 0 {
			b.float(semconv.DiskAwait, spent.Seconds()/float64(operations), name, direction)
		}
	}
	await(semconv.DiskIODirectionRead, d.Reads-last.Reads, d.ReadTime-last.ReadTime)
	await(semconv.DiskIODirectionWrite, d.Writes-last.Writes, d.WriteTime-last.WriteTime)
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
		b.float(metric, p.Full.Seconds(), semconv.PressureStallTypeFull)
	}
}

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
		times := modes(core)
		for k, mode := range times {
			b.float(semconv.SystemCPUTime, mode.spent.Seconds(), id, mode.mode)
			if last != nil && elapsed > 0 {
				// iowait goes back when a task moves to another core.
				grown := max(0, mode.spent-modes(last)[k].spent)
				b.float(semconv.SystemCPUUtilization, min(1, grown.Seconds()/elapsed), id, mode.mode)
			}
		}
	}
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

func (m *Metrics) processes(b *builder, now *sample.Snapshot) {
	b.at(now.Jobs.At, m.last.Jobs.At)
	for i := range now.Jobs.Processes {
		p := &now.Jobs.Processes[i]
		if !p.HasIO {
			continue
		}
		pid := semconv.ProcessPIDKey.Int(p.PID)
		b.int(semconv.ProcessDiskIO, p.ReadBytes, pid, semconv.DiskIODirectionRead)
		b.int(semconv.ProcessDiskIO, p.WriteBytes, pid, semconv.DiskIODirectionWrite)
	}
}

func (m *Metrics) gpus(b *builder, now *sample.Snapshot) {
	elapsed := b.at(now.GPUs.At, m.last.GPUs.At)
	for i := range now.GPUs.GPUs {
		g := &now.GPUs.GPUs[i]
		attrs := list{semconv.HwIDKey.String(g.ID)}
		attrs.text(semconv.HwNameKey, g.Name)
		b.float(semconv.GPUBusyTime, g.Busy.Seconds(), attrs...)
		last := find(m.last.GPUs.GPUs, func(x *sample.GPU) bool { return x.ID == g.ID })
		if last != nil && elapsed > 0 && g.Busy >= last.Busy {
			b.float(semconv.HwGPUUtilization, min(1, (g.Busy-last.Busy).Seconds()/elapsed), append(attrs, semconv.HwGPUTaskGeneral)...)
		}
	}
}

// start is when a counter began: at boot, or, once it was seen to begin again, at the reading before that.
func (m *Metrics) start(id string, boot, before time.Time, again bool) time.Time {
	if again {
		m.began[id] = before
	}
	if at, ok := m.began[id]; ok {
		return at
	}
	return boot
}

// forget drops the start times of devices that are no longer there.
func (m *Metrics) forget(prefix string, there func(name string) bool) {
	for id := range m.began {
		if name, ok := strings.CutPrefix(id, prefix); ok && !there(name) {
			delete(m.began, id)
		}
	}
}

func find[T any](all []T, is func(*T) bool) *T {
	for i := range all {
		if is(&all[i]) {
			return &all[i]
		}
	}
	return nil
}
