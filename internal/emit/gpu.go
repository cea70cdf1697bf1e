package emit

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// gpus emits every GPU. Of a GPU that cannot be read, it emits the state and the errors.
func (m *Metrics) gpus(b *builder, now *sample.Snapshot) {
	elapsed := b.at(now.GPUs.At, m.last.GPUs.At)
	for i := range now.GPUs.GPUs {
		g := &now.GPUs.GPUs[i]
		sets := m.sets.gpus.get(gpuName{g.ID, g.Name, g.Driver, g.Parent}, newGPUSets)
		detail := find(now.GPUs.GPUDetails, func(x *sample.GPUDetail) bool { return x.GPU == g.ID })
		b.status(stateOf(g, detail), &sets.states)
		if g.Status != sample.GPUWorks {
			if detail != nil {
				m.errors(b, detail, sets)
				b.start = now.Boot
			}
			continue
		}
		last := find(m.last.GPUs.GPUs, func(x *sample.GPU) bool { return x.ID == g.ID })
		counted := m.counted.get(g.ID, newGPUCounted)
		m.gpuCounters(b, g, counted, now, sets)
		if last != nil && last.Status == sample.GPUWorks && elapsed > 0 && g.Busy >= last.Busy &&
			(g.Has|last.Has)&sample.LacksBusy == 0 {
			b.float(&semconv.HwGPUUtilization, min(1, (g.Busy-last.Busy).Seconds()/elapsed), sets.general)
		}
		b.gpuGauges(g, sets)
		if detail != nil {
			m.gpuDetail(b, detail, now, sets, counted)
		}
	}
	b.start = now.Boot
	m.gpuProcesses(b, now)
	m.driver(b, now)
}

// The states of hw.status, in the order of gpuSets.states and driveSets.states.
const (
	stateOK = iota
	stateDegraded
	stateFailed
	statePredictedFailure
)

// stateOf returns the worst known state of a GPU. detail may be nil.
func stateOf(g *sample.GPU, detail *sample.GPUDetail) int {
	is := func(q sample.GPUQuantity) bool {
		v, known := detail.Values.Get(q)
		return known && v > 0
	}
	switch {
	case g.Status == sample.GPULost:
		return stateFailed
	case g.Status == sample.GPUHung:
		return stateDegraded
	case detail != nil && is(sample.GPURepairFailed):
		return statePredictedFailure
	case detail != nil && is(sample.GPURepairPending):
		return stateDegraded
	}
	return stateOK
}

// status emits hw.status, which has a series for each state: 1 for the current one, 0 for the others.
func (b *builder) status(state int, sets *[4]attribute.Set) {
	for i := range sets {
		value := uint64(0)
		if i == state {
			value = 1
		}
		b.int(&semconv.HwStatus, value, sets[i])
	}
}

// gpuCounters emits the counters. Each one restarts by itself when the driver is loaded again. Busy time is summed up
// by this program, so it starts with the program.
func (m *Metrics) gpuCounters(b *builder, g *sample.GPU, c *gpuCounted, now *sample.Snapshot, sets *gpuSets) {
	if g.Has&sample.LacksBusy == 0 {
		b.start = c.busy.start(g.Busy.Seconds(), c.read, m.program)
		b.float(&semconv.GPUBusyTime, g.Busy.Seconds(), sets.plain)
	}
	if g.Has&sample.HasEnergy != 0 {
		b.start = c.energy.start(g.Energy, c.read, now.Boot)
		b.float(&semconv.HwEnergy, g.Energy, sets.hardware)
	}
	c.read, b.start = b.time, now.Boot
}

func (b *builder) gpuGauges(g *sample.GPU, sets *gpuSets) {
	if g.Has&sample.HasMemory != 0 {
		b.int(&semconv.HwGPUMemoryUsage, g.MemoryUsed, sets.plain)
		b.int(&semconv.HwGPUMemoryLimit, g.MemoryTotal, sets.plain)
		if g.MemoryTotal > 0 {
			b.float(&semconv.HwGPUMemoryUtilization, float64(g.MemoryUsed)/float64(g.MemoryTotal), sets.plain)
		}
	}
	if g.Has&sample.HasTemperature != 0 {
		b.float(&semconv.HwTemperature, g.Temperature, sets.sensor)
	}
	if g.Has&sample.HasPower != 0 {
		b.float(&semconv.HwPower, g.Power, sets.hardware)
	}
	if g.Has&sample.HasLink != 0 {
		b.int(&semconv.GPUPCIeLinkWidth, uint64(g.LinkWidth), sets.plain)
		b.int(&semconv.GPUPCIeLinkGeneration, uint64(g.LinkGeneration), sets.plain)
	}
	if g.Has&sample.HasLinkMax != 0 {
		b.int(&semconv.GPUPCIeLinkWidth, uint64(g.LinkWidthMax), sets.limit)
		b.int(&semconv.GPUPCIeLinkGeneration, uint64(g.LinkGenerationMax), sets.limit)
	}
}

func (m *Metrics) gpuProcesses(b *builder, now *sample.Snapshot) {
	for _, p := range now.GPUs.GPUProcesses {
		gpu := find(now.GPUs.GPUs, func(g *sample.GPU) bool { return g.ID == p.GPU })
		if p.Has && gpu != nil && gpu.Status == sample.GPUWorks {
			b.int(&semconv.ProcessGPUMemoryUsage, p.Memory, *m.sets.holders.get(holder{p.GPU, p.PID}, newHolderSet))
		}
	}
}
