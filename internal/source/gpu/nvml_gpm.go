//go:build linux && cgo

package gpu

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// maxGPMSamples bounds the samples of a session: a GPU that is lost and returns allocates two more.
const maxGPMSamples = 4 * maxDevices

// gpmPair is the two newest GPM samples of a device.
type gpmPair struct {
	samples  [2]nvml.GpmSample // nil before the first
	newest   int
	instance int // GPU instance ID of a MIG device
	metrics  *nvml.GpmMetricsGetType
}

// metrics takes a sample, and sets the means of a list between the two newest samples.
func (h *handle) metrics(list []answer) error {
	g := &h.gpm
	if g.metrics == nil {
		if err := h.beginGPM(); err != nil {
			return err
		}
	}
	older, f := g.samples[1-g.newest], callGPM
	take := func() nvml.Return { return older.Get(h.device) }
	if h.parentGPU != nil {
		f, take = "nvmlGpmMigSampleGet", func() nvml.Return { return older.MigGet(h.parentGPU.device, g.instance) }
	}
	if err := h.call(f, take); err != nil {
		return err
	}
	g.newest = 1 - g.newest
	if len(list) == 0 {
		return nil
	}
	m := g.metrics
	m.Sample1, m.Sample2, m.NumMetrics = g.samples[1-g.newest], g.samples[g.newest], uint32(len(list))
	for i, v := range list {
		m.Metrics[i] = nvml.GpmMetric{MetricId: rows[v.row].id}
	}
	err := h.call("nvmlGpmMetricsGet", func() nvml.Return { return h.GpmMetricsGet(m) })
	for i := range list {
		list[i].number, list[i].err = m.Metrics[i].Value, errorOf(nvml.Return(m.Metrics[i].NvmlReturn))
		list[i].check()
	}
	return err
}

// beginGPM checks that the device supports GPM, and allocates two samples. The streaming state, which other programs
// may have set, does not matter: a sample can be taken in either state.
func (h *handle) beginGPM() error {
	if !h.has("nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleFree", callGPM, "nvmlGpmMetricsGet") {
		return codeFunctionNotFound
	}
	gpu := h.device
	if h.parentGPU != nil {
		gpu = h.parentGPU.device
		var err error
		if h.gpm.instance, err = get(h.library, "nvmlDeviceGetGpuInstanceId", h.device.GetGpuInstanceId); err != nil {
			return err
		}
	}
	support, err := get(h.library, "nvmlGpmQueryDeviceSupport", gpu.GpmQueryDeviceSupport)
	if err != nil {
		return err
	}
	if support.IsSupportedDevice == 0 {
		return codeNotSupported
	}
	for i := range h.gpm.samples {
		if h.gpm.samples[i] != nil {
			continue
		}
		if h.gpm.samples[i], err = h.newSample(); err != nil {
			h.gpm.samples[i] = nil
			return err
		}
	}
	h.gpm.metrics = &nvml.GpmMetricsGetType{}
	return nil
}

func (l *library) newSample() (nvml.GpmSample, error) {
	l.mu.Lock()
	full := len(l.session.samples) >= maxGPMSamples
	l.mu.Unlock()
	if full {
		return nil, codeNotSupported
	}
	s, err := get(l, "nvmlGpmSampleAlloc", l.GpmSampleAlloc)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session.samples = append(l.session.samples, s)
	return s, nil
}
