package emit

import (
	"cmp"
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// gpus emits every GPU. Of a GPU that cannot be read, it emits the state and the errors.
func (m *Metrics) gpus(b *builder, now *sample.Snapshot) {
	elapsed := b.at(now.GPUs.At, m.last.GPUs.At)
	for i := range now.GPUs.GPUs {
		g := &now.GPUs.GPUs[i]
		sets := m.sets.gpus.get(gpuName{g.ID, g.Name, g.Driver, g.Vendor, g.Parent}, newGPUSets)
		detail := find(now.GPUs.GPUDetails, func(x *sample.GPUDetail) bool { return x.GPU == g.ID })
		if g.Status.IsKnown() {
			b.status(stateOf(g, detail), &sets.states)
		}
		if g.Status != sample.GPUWorks {
			if detail != nil {
				m.errors(b, detail, sets)
				b.start = now.Boot
			}
			continue
		}
		last := find(m.last.GPUs.GPUs, func(x *sample.GPU) bool { return x.ID == g.ID })
		counted := m.counted.get(g.ID, nil)
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
	b.gpuProcesses(now)
	m.driver(b, now)
}

// The states of hw.status, in the order of gpuSets.states and driveSets.states.
const (
	stateOK = iota
	stateDegraded
	stateFailed
	statePredictedFailure
)

// states returns the sets of hw.status of a device, by state.
func (l list) states(kind attribute.KeyValue) [4]attribute.Set {
	return [4]attribute.Set{
		stateOK:               l.with(kind, semconv.HwStateOK),
		stateDegraded:         l.with(kind, semconv.HwStateDegraded),
		stateFailed:           l.with(kind, semconv.HwStateFailed),
		statePredictedFailure: l.with(kind, semconv.HwStatePredictedFailure),
	}
}

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

func (b *builder) gpuProcesses(now *sample.Snapshot) {
	for _, p := range now.GPUs.GPUProcesses {
		gpu := find(now.GPUs.GPUs, func(g *sample.GPU) bool { return g.ID == p.GPU })
		if p.Has && gpu != nil && gpu.Status == sample.GPUWorks {
			holder := list{semconv.HwIDKey.String(UTF8(p.GPU)), semconv.ProcessPIDKey.Int(p.PID)}
			b.int(&semconv.ProcessGPUMemoryUsage, p.Memory, holder.with())
		}
	}
}

// gpuCounted holds a GPU's counters of the last collection. Unlike the last snapshot, it survives a time in which the
// GPU could not be read.
type gpuCounted struct {
	read, detail time.Time // when its values, and its details, were read
	busy, energy counted
	details      [sample.GPUQuantities]counted
}

// counted is one counter, which may restart.
type counted struct {
	last  float64
	began time.Time // of the last restart; zero before the first one
}

// start returns the start time of the counter: boot, or after a restart the last reading before it.
func (c *counted) start(v float64, before, boot time.Time) time.Time {
	if v < c.last {
		c.began = before
	}
	c.last = v
	if c.began.IsZero() {
		return boot
	}
	return c.began
}

// gpuDetail emits the last details of a GPU, with the time of their reading.
func (m *Metrics) gpuDetail(b *builder, d *sample.GPUDetail, now *sample.Snapshot, sets *gpuSets, c *gpuCounted) {
	b.time = now.GPUs.At.Wall.Add(d.At - now.GPUs.At.Mono)
	for q, v := range d.Values.All() {
		to := places[q].metric
		if to == nil || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		b.start = now.Boot
		if to.Kind == semconv.Counter {
			b.start = c.details[q].start(v, c.detail, now.Boot)
		}
		b.number(to, v, sets.details[q])
	}
	m.errors(b, d, sets)
	c.detail = b.time
	b.time, b.start = now.GPUs.At.Wall, now.Boot
}

// toCount converts a count that was stored as a float64, which is exact up to 2^53.
func toCount(v float64) uint64 { return uint64(min(max(0, v), math.MaxInt64)) }

// errors emits the errors that this program has counted since its start.
func (m *Metrics) errors(b *builder, d *sample.GPUDetail, sets *gpuSets) {
	b.start = m.program
	b.xids(d.XIDs, sets)
}

// xids emits a series for each of the first maxXIDs codes, and one for all others.
func (b *builder) xids(all []sample.XID, sets *gpuSets) {
	others, more := uint64(0), false
	for _, x := range all {
		if set, own := sets.xid(x.Code); own {
			b.int(&semconv.HwErrors, x.Count, set)
		} else {
			others, more = others+x.Count, true
		}
	}
	if more {
		b.int(&semconv.HwErrors, others, sets.otherXID)
	}
}

// driver emits the cost of the calls to the GPUs' driver.
func (m *Metrics) driver(b *builder, now *sample.Snapshot) {
	use := now.GPUs.DriverUse
	if use == nil {
		return
	}
	b.start = m.program
	var calls []metricdata.HistogramDataPoint[float64]
	for i := range use.Calls {
		call := &use.Calls[i]
		calls = append(calls, metricdata.HistogramDataPoint[float64]{
			Attributes: attribute.NewSet(semconv.NVMLFunctionKey.String(UTF8(call.Name))),
			StartTime:  startBefore(b.start, b.time), Time: b.time,
			Count: call.Count, Sum: call.Time.Seconds(), BucketCounts: []uint64{call.Count},
			Max: metricdata.NewExtrema(call.Longest.Seconds()),
		})
	}
	b.histogram(&semconv.NVMLCallDuration, calls)
	for i := range use.Fields {
		field := &use.Fields[i]
		set := attribute.NewSet(semconv.NVMLFieldKey.String(UTF8(field.Name)))
		b.float(&semconv.NVMLFieldTime, field.Time.Seconds(), set)
	}
	b.int(&semconv.NVMLValueDropped, use.Dropped, *attribute.EmptySet())
	b.int(&semconv.NVMLSessions, use.Sessions, *attribute.EmptySet())
	b.start = now.Boot
}

// The sensors of a GPU.
var (
	sensorChip   = semconv.HwSensorLocationKey.String("gpu")
	sensorMemory = semconv.HwSensorLocationKey.String("memory")
)

// place is the metric of a quantity, with the attributes that it has in addition to the device's own.
type place struct {
	metric *semconv.Metric
	with   []attribute.KeyValue
}

func in(metric *semconv.Metric, with ...attribute.KeyValue) place { return place{metric, with} }

// places has the place of each quantity except for the repairs, which are part of hw.status. It is read-only.
var places = [sample.GPUQuantities]place{
	sample.GPUEncoder:    in(&semconv.HwGPUUtilization, semconv.HwGPUTaskEncoder),
	sample.GPUDecoder:    in(&semconv.HwGPUUtilization, semconv.HwGPUTaskDecoder),
	sample.GPUController: in(&semconv.GPUMemoryControllerUtilization),

	sample.GPUSMActive:     in(&semconv.GPUSMUtilization),
	sample.GPUSMOccupancy:  in(&semconv.GPUSMOccupancy),
	sample.GPUTensorActive: in(&semconv.GPUTensorUtilization),
	sample.GPUDRAMActive:   in(&semconv.GPUDRAMUtilization),

	sample.GPUPCIeReceived:    in(&semconv.HwGPUIO, semconv.NetworkIODirectionReceive),
	sample.GPUPCIeSent:        in(&semconv.HwGPUIO, semconv.NetworkIODirectionTransmit),
	sample.GPUPCIeReceiveRate: in(&semconv.GPUPCIeThroughput, semconv.NetworkIODirectionReceive),
	sample.GPUPCIeSendRate:    in(&semconv.GPUPCIeThroughput, semconv.NetworkIODirectionTransmit),
	sample.GPUNVLinkReceived:  in(&semconv.GPUNVLinkIO, semconv.NetworkIODirectionReceive),
	sample.GPUNVLinkSent:      in(&semconv.GPUNVLinkIO, semconv.NetworkIODirectionTransmit),

	sample.GPUPowerLimit:        in(&semconv.GPUPowerLimit, semconv.HwTypeGPU),
	sample.GPUTemperatureMemory: in(&semconv.HwTemperature, sensorMemory),
	sample.GPUSlowdownAt:        in(&semconv.HwTemperatureLimit, sensorChip, semconv.HwLimitTypeHighDegraded),
	sample.GPUShutdownAt:        in(&semconv.HwTemperatureLimit, sensorChip, semconv.HwLimitTypeHighCritical),
	sample.GPUMemorySlowdownAt:  in(&semconv.HwTemperatureLimit, sensorMemory, semconv.HwLimitTypeHighDegraded),
	sample.GPUFan:               in(&semconv.HwFanSpeedRatio),

	sample.GPUClockSM:       in(&semconv.GPUClockFrequency, semconv.GPUClockDomainSM),
	sample.GPUClockMemory:   in(&semconv.GPUClockFrequency, semconv.GPUClockDomainMemory),
	sample.GPUClockGraphics: in(&semconv.GPUClockFrequency, semconv.GPUClockDomainGraphics),
	sample.GPUClockVideo:    in(&semconv.GPUClockFrequency, semconv.GPUClockDomainVideo),

	sample.GPUThrottledPower:       in(&semconv.GPUClockThrottleTime, semconv.GPUClockThrottleReasonPower),
	sample.GPUThrottledThermal:     in(&semconv.GPUClockThrottleTime, semconv.GPUClockThrottleReasonThermal),
	sample.GPUThrottledHWThermal:   in(&semconv.GPUClockThrottleTime, semconv.GPUClockThrottleReasonHwThermal),
	sample.GPUThrottledPowerBrake:  in(&semconv.GPUClockThrottleTime, semconv.GPUClockThrottleReasonPowerBrake),
	sample.GPUThrottledSyncBoost:   in(&semconv.GPUClockThrottleTime, semconv.GPUClockThrottleReasonSyncBoost),
	sample.GPUThrottledBoard:       in(&semconv.GPUClockThrottleTime, semconv.GPUClockThrottleReasonBoard),
	sample.GPUThrottledReliability: in(&semconv.GPUClockThrottleTime, semconv.GPUClockThrottleReasonReliability),

	sample.GPUErrorsCorrected:   in(&semconv.HwErrors, semconv.HwTypeGPU, semconv.ErrorTypeCorrected),
	sample.GPUErrorsUncorrected: in(&semconv.HwErrors, semconv.HwTypeGPU, semconv.ErrorTypeUncorrected),
	sample.GPUPCIeReplays:       in(&semconv.HwErrors, semconv.HwTypeGPU, semconv.ErrorTypePCIeReplay),
	sample.GPURowsRemapped:      in(&semconv.HwErrors, semconv.HwTypeGPU, semconv.ErrorTypeRowRemap),
	sample.GPUPagesRetired:      in(&semconv.HwErrors, semconv.HwTypeGPU, semconv.ErrorTypeRetiredPage),

	sample.GPUMemoryReserved: in(&semconv.GPUMemoryReserved),
}

// maxXIDs bounds the XID codes of a GPU that have a series of their own. NVIDIA lists fewer than 200, and a single
// GPU rarely reports more than a few.
const maxXIDs = 64

// gpuName has the attributes of all points of a GPU.
type gpuName struct{ id, name, driver, vendor, parent string }

type gpuSets struct {
	plain    attribute.Set
	general  attribute.Set // with the task of hw.gpu.utilization
	hardware attribute.Set // with hw.type
	sensor   attribute.Set // for the temperature of the chip
	limit    attribute.Set // for the highest possible value
	states   [4]attribute.Set
	details  [sample.GPUQuantities]attribute.Set // of the quantities with a place
	names    list                                // attributes of all points
	xids     map[int]attribute.Set               // by code: the first maxXIDs to occur
	otherXID attribute.Set
}

func newGPUSets(n gpuName) gpuSets {
	attrs := list{semconv.HwIDKey.String(UTF8(n.id))}
	attrs.text(semconv.HwNameKey, n.name)
	attrs.text(semconv.HwModelKey, n.name)
	attrs.text(semconv.HwParentKey, n.parent)
	if n.driver != "" { // the emulated GPU has none
		attrs.text(semconv.HwDriverVersionKey, n.driver)
		attrs.text(semconv.HwVendorKey, cmp.Or(n.vendor, "NVIDIA"))
	}
	s := gpuSets{
		general:  attrs.with(semconv.HwGPUTaskGeneral),
		hardware: attrs.with(semconv.HwTypeGPU),
		sensor:   attrs.with(sensorChip),
		limit:    attrs.with(semconv.HwLimitTypeMax),
		states:   attrs.states(semconv.HwTypeGPU),
		plain:    attrs.with(),
		otherXID: attrs.with(semconv.HwTypeGPU, semconv.ErrorTypeXidOther),
		names:    attrs,
	}
	for q := range places {
		if places[q].metric != nil {
			s.details[q] = attrs.with(places[q].with...)
		}
	}
	return s
}

// with returns the set of l and more.
func (l list) with(more ...attribute.KeyValue) attribute.Set {
	return attribute.NewSet(append(l[:len(l):len(l)], more...)...)
}

// xid returns the attributes of an XID code, and whether no other code shares them.
func (s *gpuSets) xid(code int) (set attribute.Set, own bool) {
	if set, own = s.xids[code]; own {
		return set, true
	}
	if len(s.xids) >= maxXIDs {
		return s.otherXID, false
	}
	if s.xids == nil {
		s.xids = map[int]attribute.Set{}
	}
	set = s.names.with(semconv.HwTypeGPU, semconv.ErrorTypeKey.String("xid_"+strconv.Itoa(code)))
	s.xids[code] = set
	return set, true
}
