package gpu

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	gpmSoonest = 100 * time.Millisecond // between two samples (nvml.h)
	gpmLatest  = 10 * time.Second       // a mean over more, as after a hang, says little of any moment
)

// metric is one value of nvmlGpmMetricsGet: what is asked for, then what was answered.
type metric struct {
	id    uint32
	value float64
	err   error
}

// metricPlan says what a metric tells.
type metricPlan struct {
	name     string // in nvml.h
	id       uint32
	quantity sample.GPUQuantity
	unit     float64
}

const mebibyte = 1 << 20

var metricPlans = []metricPlan{
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
type profile struct {
	metrics []metric
	plans   []metricPlan                   // one for each
	at      time.Duration                  // of the newest sample; 0 for none
	traffic sample.GPUValues               // bytes a second on PCIe, for counters that wrap
	sums    map[sample.GPUQuantity]float64 // bytes over NVLink so far
}

// askGPM takes a sample and asks for the means since the one before.
func (a *asked) askGPM(r *reading) {
	g, now := &a.gpm, r.clocks.at.Mono
	since := now - g.at
	if g.at != 0 && since < gpmSoonest {
		return
	}
	sampled, told := false, false
	a.ask(askGPM, r, func() error {
		err := a.gpmSample()
		if sampled = err == nil; sampled && g.at != 0 && since <= gpmLatest {
			err = a.gpmMetrics(g.metrics)
			told = err == nil
		}
		return err
	})
	g.at, g.traffic = 0, sample.GPUValues{}
	if sampled {
		g.at = now
	}
	if told {
		a.takeMetrics(r, since)
		return
	}
	for _, p := range g.plans {
		if counterOf[p.quantity] != p.quantity { // a counter stands still meanwhile
			a.drop(p.quantity)
		}
	}
}

// takeMetrics keeps what was told, and forgets what the device does not have or what the fields tell better.
func (a *asked) takeMetrics(r *reading, since time.Duration) {
	g := &a.gpm
	kept := 0
	for i, p := range g.plans {
		m := g.metrics[i]
		counter, traffic := counterOf[p.quantity]
		if isLacking(m.err) && !a.batch.tells(p.quantity) {
			a.drop(p.quantity)
		}
		if isLacking(m.err) || traffic && a.batch.tells(counter) && !a.batch.narrow(counter) {
			continue
		}
		g.metrics[kept], g.plans[kept] = m, p
		kept++
		value := m.value * p.unit
		switch {
		case m.err != nil:
			a.drop(p.quantity)
		case !traffic:
			if a.keep(p.quantity, value, r) && value > 1 {
				a.known.Set(p.quantity, 1)
			}
		case !r.possible(p.quantity.String(), value >= 0 && value <= mostTraffic):
			a.drop(p.quantity)
		case counter == p.quantity:
			g.sums[counter] += value * since.Seconds()
			a.keep(counter, g.sums[counter], r)
		case a.batch.tells(counter):
			g.traffic.Set(p.quantity, value)
		default:
			a.known.Set(p.quantity, value)
		}
	}
	g.metrics, g.plans = g.metrics[:kept], g.plans[:kept]
	if kept == 0 {
		a.lacks[askGPM] = true
	}
}

func newProfile() profile {
	p := profile{plans: slices.Clone(metricPlans), sums: map[sample.GPUQuantity]float64{}}
	for _, plan := range p.plans {
		p.metrics = append(p.metrics, metric{id: plan.id})
	}
	return p
}
