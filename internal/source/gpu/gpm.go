package gpu

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	minGPMInterval = 100 * time.Millisecond // between two samples (nvml.h)
	maxGPMInterval = 10 * time.Second       // a mean over more, such as after a hang, is useless
)

// metric is one value of nvmlGpmMetricsGet: the request, then the result.
type metric struct {
	id    uint32
	value float64
	err   error
}

// counterOf has the counter of each rate of traffic. The rate stands in for the counter or helps to unwrap it.
var counterOf = map[sample.GPUQuantity]sample.GPUQuantity{
	sample.GPUPCIeReceiveRate: sample.GPUPCIeReceived,
	sample.GPUPCIeSendRate:    sample.GPUPCIeSent,
	sample.GPUNVLinkReceived:  sample.GPUNVLinkReceived,
	sample.GPUNVLinkSent:      sample.GPUNVLinkSent,
}

// gpmState is the GPM state of a device.
type gpmState struct {
	metrics []metric
	specs   []row                          // one for each of metrics
	at      time.Duration                  // of the newest sample; 0 for none
	traffic sample.GPUValues               // PCIe bytes a second, to unwrap counters
	sums    map[sample.GPUQuantity]float64 // NVLink bytes
}

// readGPM takes a GPM sample and reads the means since the one before.
func (d *deviceReader) readGPM(r *reading) {
	g, now := &d.gpm, r.clocks.at.Mono
	since := now - g.at
	if g.at != 0 && since < minGPMInterval {
		return
	}
	sampled, read := false, false
	d.do(queryGPM, r, func() error {
		err := d.gpmSample()
		if sampled = err == nil; sampled && g.at != 0 && since <= maxGPMInterval {
			err = d.gpmMetrics(g.metrics)
			read = err == nil
		}
		return err
	})
	g.at, g.traffic = 0, sample.GPUValues{}
	if sampled {
		g.at = now
	}
	if read {
		d.applyMetrics(r, since)
		return
	}
	for _, p := range g.specs {
		if counterOf[p.quantity] != p.quantity { // a counter keeps its value
			d.drop(p.quantity)
		}
	}
}

// applyMetrics keeps the valid metrics. It drops those that the device does not support or that field values provide
// better.
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
	p := gpmState{specs: slices.Clone(metricRows), sums: map[sample.GPUQuantity]float64{}}
	for _, s := range p.specs {
		p.metrics = append(p.metrics, metric{id: s.id})
	}
	return p
}
