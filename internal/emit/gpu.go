package emit

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// gpus tells of every accelerator. Of one that cannot be read there is its state alone.
func (m *Metrics) gpus(b *builder, now *sample.Snapshot) {
	elapsed := b.at(now.GPUs.At, m.last.GPUs.At)
	for i := range now.GPUs.GPUs {
		g := &now.GPUs.GPUs[i]
		attrs := identity(g)
		b.states(g, attrs)
		if g.Status != sample.GPUWorks {
			continue
		}
		last := find(m.last.GPUs.GPUs, func(x *sample.GPU) bool { return x.ID == g.ID })
		m.gpuCounters(b, g, last, now, attrs)
		if last != nil && last.Status == sample.GPUWorks && elapsed > 0 && g.Busy >= last.Busy && (g.Has|last.Has)&sample.LacksBusy == 0 {
			b.float(semconv.HwGPUUtilization, min(1, (g.Busy-last.Busy).Seconds()/elapsed), with(attrs, semconv.HwGPUTaskGeneral)...)
		}
		b.gpuGauges(g, attrs)
	}
	b.start = now.Boot
	b.gpuProcesses(now)
}

// identity names an accelerator, the same on all of its points.
func identity(g *sample.GPU) list {
	attrs := list{semconv.HwIDKey.String(g.ID)}
	attrs.text(semconv.HwNameKey, g.Name)
	attrs.text(semconv.HwModelKey, g.Name)
	if g.Driver != "" { // NVML's: there is no other
		attrs.text(semconv.HwDriverVersionKey, g.Driver)
		attrs.text(semconv.HwVendorKey, "NVIDIA")
	}
	return attrs
}

// with adds attributes to a list that others go on using.
func with(attrs list, more ...attribute.KeyValue) list {
	return append(attrs[:len(attrs):len(attrs)], more...)
}

// states has a series for each, as hw.status is defined.
func (b *builder) states(g *sample.GPU, attrs list) {
	for _, x := range []struct {
		state attribute.KeyValue
		is    sample.GPUStatus
	}{{semconv.HwStateOK, sample.GPUWorks}, {semconv.HwStateDegraded, sample.GPUHung}, {semconv.HwStateFailed, sample.GPULost}} {
		value := uint64(0)
		if g.Status == x.is {
			value = 1
		}
		b.int(semconv.HwStatus, value, with(attrs, semconv.HwTypeGPU, x.state)...)
	}
}

// gpuCounters begin again when the driver is loaded again, each for itself.
func (m *Metrics) gpuCounters(b *builder, g, last *sample.GPU, now *sample.Snapshot, attrs list) {
	before := m.last.GPUs.At.Wall
	if g.Has&sample.LacksBusy == 0 {
		b.start = m.start(g.ID, now.Boot, before, last != nil && g.Busy < last.Busy)
		b.float(semconv.GPUBusyTime, g.Busy.Seconds(), attrs...)
	}
	if g.Has&sample.HasEnergy != 0 {
		b.start = m.start(g.ID+" energy", now.Boot, before, last != nil && g.Energy < last.Energy)
		b.float(semconv.HwEnergy, g.Energy, with(attrs, semconv.HwTypeGPU)...)
	}
	b.start = now.Boot
}

func (b *builder) gpuGauges(g *sample.GPU, attrs list) {
	if g.Has&sample.HasMemory != 0 {
		b.int(semconv.HwGPUMemoryUsage, g.MemoryUsed, attrs...)
		b.int(semconv.HwGPUMemoryLimit, g.MemoryTotal, attrs...)
		if g.MemoryTotal > 0 {
			b.float(semconv.HwGPUMemoryUtilization, float64(g.MemoryUsed)/float64(g.MemoryTotal), attrs...)
		}
	}
	if g.Has&sample.HasTemperature != 0 {
		b.float(semconv.HwTemperature, g.Temperature, with(attrs, semconv.HwSensorLocationKey.String("gpu"))...)
	}
	if g.Has&sample.HasPower != 0 {
		b.float(semconv.HwPower, g.Power, with(attrs, semconv.HwTypeGPU)...)
	}
	if g.Has&sample.HasLink != 0 {
		b.int(semconv.GPUPCIeLinkWidth, uint64(g.LinkWidth), attrs...)
		b.int(semconv.GPUPCIeLinkGeneration, uint64(g.LinkGeneration), attrs...)
	}
	if g.Has&sample.HasLinkMax != 0 {
		b.int(semconv.GPUPCIeLinkWidth, uint64(g.LinkWidthMax), with(attrs, semconv.HwLimitTypeMax)...)
		b.int(semconv.GPUPCIeLinkGeneration, uint64(g.LinkGenerationMax), with(attrs, semconv.HwLimitTypeMax)...)
	}
}

func (b *builder) gpuProcesses(now *sample.Snapshot) {
	for _, p := range now.GPUs.GPUProcesses {
		gpu := find(now.GPUs.GPUs, func(g *sample.GPU) bool { return g.ID == p.GPU })
		if p.Has && gpu != nil && gpu.Status == sample.GPUWorks {
			b.int(semconv.ProcessGPUMemoryUsage, p.Memory, semconv.HwIDKey.String(p.GPU), semconv.ProcessPIDKey.Int(p.PID))
		}
	}
}
