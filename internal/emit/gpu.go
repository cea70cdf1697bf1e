package emit

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// gpus tells of every accelerator. Of one that cannot be read there is its state, and the errors that say why.
func (m *Metrics) gpus(b *builder, now *sample.Snapshot) {
	elapsed := b.at(now.GPUs.At, m.last.GPUs.At)
	for i := range now.GPUs.GPUs {
		g := &now.GPUs.GPUs[i]
		of := m.sets.gpus.of(gpuName{g.ID, g.Name, g.Driver, g.Parent}, newGPUSets)
		detail := find(now.GPUs.GPUDetails, func(x *sample.GPUDetail) bool { return x.GPU == g.ID })
		b.states(stateOf(g, detail), &of.states)
		if g.Status != sample.GPUWorks {
			if detail != nil {
				m.errors(b, detail, of)
				b.start = now.Boot
			}
			continue
		}
		last := find(m.last.GPUs.GPUs, func(x *sample.GPU) bool { return x.ID == g.ID })
		counted := m.counted.of(g.ID, newGPUCounted)
		m.gpuCounters(b, g, counted, now, of)
		if last != nil && last.Status == sample.GPUWorks && elapsed > 0 && g.Busy >= last.Busy && (g.Has|last.Has)&sample.LacksBusy == 0 {
			b.float(&semconv.HwGPUUtilization, min(1, (g.Busy-last.Busy).Seconds()/elapsed), of.general)
		}
		b.gpuGauges(g, of)
		if detail != nil {
			m.gpuDetail(b, detail, now, of, counted)
		}
	}
	b.start = now.Boot
	m.gpuProcesses(b, now)
	m.driver(b, now)
}

// The states of hw.status, in the order of gpuSets.states and driveSets.states.
const (
	isOK = iota
	isDegraded
	isFailed
	willFail
)

// stateOf is the worst that is known of an accelerator. detail is nil where nothing was told.
func stateOf(g *sample.GPU, detail *sample.GPUDetail) int {
	is := func(q sample.GPUQuantity) bool {
		v, told := detail.Values.Get(q)
		return told && v > 0
	}
	switch {
	case g.Status == sample.GPULost:
		return isFailed
	case g.Status == sample.GPUHung:
		return isDegraded
	case detail != nil && is(sample.GPURepairFailed):
		return willFail
	case detail != nil && is(sample.GPURepairPending):
		return isDegraded
	}
	return isOK
}

// states has a series for each, as hw.status is defined.
func (b *builder) states(state int, of *[4]attribute.Set) {
	for i := range of {
		value := uint64(0)
		if i == state {
			value = 1
		}
		b.int(&semconv.HwStatus, value, of[i])
	}
}

// gpuCounters begin again when the driver is loaded again, each for itself. Busy time is summed up by the program, and so
// since it began.
func (m *Metrics) gpuCounters(b *builder, g *sample.GPU, c *gpuCounted, now *sample.Snapshot, of *gpuSets) {
	if g.Has&sample.LacksBusy == 0 {
		b.start = c.busy.start(g.Busy.Seconds(), c.read, m.program)
		b.float(&semconv.GPUBusyTime, g.Busy.Seconds(), of.plain)
	}
	if g.Has&sample.HasEnergy != 0 {
		b.start = c.energy.start(g.Energy, c.read, now.Boot)
		b.float(&semconv.HwEnergy, g.Energy, of.hardware)
	}
	c.read, b.start = b.time, now.Boot
}

func (b *builder) gpuGauges(g *sample.GPU, of *gpuSets) {
	if g.Has&sample.HasMemory != 0 {
		b.int(&semconv.HwGPUMemoryUsage, g.MemoryUsed, of.plain)
		b.int(&semconv.HwGPUMemoryLimit, g.MemoryTotal, of.plain)
		if g.MemoryTotal > 0 {
			b.float(&semconv.HwGPUMemoryUtilization, float64(g.MemoryUsed)/float64(g.MemoryTotal), of.plain)
		}
	}
	if g.Has&sample.HasTemperature != 0 {
		b.float(&semconv.HwTemperature, g.Temperature, of.sensor)
	}
	if g.Has&sample.HasPower != 0 {
		b.float(&semconv.HwPower, g.Power, of.hardware)
	}
	if g.Has&sample.HasLink != 0 {
		b.int(&semconv.GPUPCIeLinkWidth, uint64(g.LinkWidth), of.plain)
		b.int(&semconv.GPUPCIeLinkGeneration, uint64(g.LinkGeneration), of.plain)
	}
	if g.Has&sample.HasLinkMax != 0 {
		b.int(&semconv.GPUPCIeLinkWidth, uint64(g.LinkWidthMax), of.most)
		b.int(&semconv.GPUPCIeLinkGeneration, uint64(g.LinkGenerationMax), of.most)
	}
}

func (m *Metrics) gpuProcesses(b *builder, now *sample.Snapshot) {
	for _, p := range now.GPUs.GPUProcesses {
		gpu := find(now.GPUs.GPUs, func(g *sample.GPU) bool { return g.ID == p.GPU })
		if p.Has && gpu != nil && gpu.Status == sample.GPUWorks {
			b.int(&semconv.ProcessGPUMemoryUsage, p.Memory, *m.sets.holders.of(holder{p.GPU, p.PID}, newHolderSet))
		}
	}
}
