package gpu

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	minGPMInterval = 100 * time.Millisecond // between two samples (nvml.h)
	maxGPMInterval = 10 * time.Second       // a mean over more, as after a hang, says little of any moment
)

// metric is one value of nvmlGpmMetricsGet: what is asked for, then what was answered.
type metric struct {
	id    uint32
	value float64
	err   error
}

// metricPlan says what a metric tells.
type metricSpec struct {
	name     string // in nvml.h
	id       uint32
	quantity sample.GPUQuantity
	unit     float64
}

const mebibyte = 1 << 20

var metricSpecs = []metricSpec{
	{"NVML_GPM_METRIC_SM_UTIL", 2, sample.GPUSMActive, 0.01},
	{"NVML_GPM_METRIC_SM_OCCUPANCY", 3, sample.GPUSMOccupancy, 0.01},
	{"NVML_GPM_METRIC_ANY_TENSOR_UTIL", 5, sample.GPUTensorActive, 0.01},
	{"NVML_GPM_METRIC_DRAM_BW_UTIL", 10, sample.GPUDRAMActive, 0.01},
	{"NVML_GPM_METRIC_PCIE_RX_PER_SEC", 21, sample.GPUPCIeReceiveRate, mebibyte},
	{"NVML_GPM_METRIC_PCIE_TX_PER_SEC", 20, sample.GPUPCIeSendRate, mebibyte},
	{"NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC", 60, sample.GPUNVLinkReceived, mebibyte},
	{"NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC", 61, sample.GPUNVLinkSent, mebibyte},
}

// counterOf is the counter of which a rate is told where that is missing, or needs help.
var counterOf = map[sample.GPUQuantity]sample.GPUQuantity{
	sample.GPUPCIeReceiveRate: sample.GPUPCIeReceived,
	sample.GPUPCIeSendRate:    sample.GPUPCIeSent,
	sample.GPUNVLinkReceived:  sample.GPUNVLinkReceived,
	sample.GPUNVLinkSent:      sample.GPUNVLinkSent,
}

// profile is what is asked of a device's performance counters.
type gpmState struct {
	metrics []metric
	specs   []metricSpec                   // one for each
	at      time.Duration                  // of the newest sample; 0 for none
	traffic sample.GPUValues               // bytes a second on PCIe, for counters that wrap
	sums    map[sample.GPUQuantity]float64 // bytes over NVLink so far
}

// askGPM takes a sample and asks for the means since the one before.
func (d *deviceReader) readGPM(r *reading) {
	g, now := &d.gpm, r.clocks.at.Mono
	since := now - g.at
	if g.at != 0 && since < minGPMInterval {
		return
	}
	sampled, told := false, false
	d.do(queryGPM, r, func() error {
		err := d.gpmSample()
		if sampled = err == nil; sampled && g.at != 0 && since <= maxGPMInterval {
			err = d.gpmMetrics(g.metrics)
			told = err == nil
		}
		return err
	})
	g.at, g.traffic = 0, sample.GPUValues{}
	if sampled {
		g.at = now
	}
	if told {
		d.applyMetrics(r, since)
		return
	}
	for _, p := range g.specs {
		if counterOf[p.quantity] != p.quantity { // a counter stands still meanwhile
			d.drop(p.quantity)
		}
	}
}

// takeMetrics keeps what was told, and forgets what the device does not have or what the fields tell better.
func (d *deviceReader) applyMetrics(r *reading, since time.Duration) {
	g := &d.gpm
	kept := 0
	for i, p := range g.specs {
		m := g.metrics[i]
		counter, traffic := counterOf[p.quantity]
		if isUnsupported(m.err) && !d.batch.provides(p.quantity) {
			d.drop(p.quantity)
		}
		if isUnsupported(m.err) || traffic && d.batch.provides(counter) && !d.batch.narrow(counter) {
			continue
		}
		g.metrics[kept], g.specs[kept] = m, p
		kept++
		value := m.value * p.unit
		switch {
		case m.err != nil:
			d.drop(p.quantity)
		case !traffic:
			if d.set(p.quantity, value, r) && value > 1 {
				d.values.Set(p.quantity, 1)
			}
		case !r.valid(p.quantity.String(), value >= 0 && value <= maxTraffic):
			d.drop(p.quantity)
		case counter == p.quantity:
			g.sums[counter] += value * since.Seconds()
			d.set(counter, g.sums[counter], r)
		case d.batch.provides(counter):
			g.traffic.Set(p.quantity, value)
		default:
			d.values.Set(p.quantity, value)
		}
	}
	g.metrics, g.specs = g.metrics[:kept], g.specs[:kept]
	if kept == 0 {
		d.unsupported[queryGPM] = true
	}
}

func newGPMState() gpmState {
	p := gpmState{specs: slices.Clone(metricSpecs), sums: map[sample.GPUQuantity]float64{}}
	for _, s := range p.specs {
		p.metrics = append(p.metrics, metric{id: s.id})
	}
	return p
}
