package stat

import (
	"math"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func detailed(after time.Duration, values map[sample.GPUQuantity]float64) *sample.Snapshot {
	s := gpuAt(after, sample.GPU{ID: "GPU-1"})
	d := sample.GPUDetail{GPU: "GPU-1", At: time.Hour + after - 300*ms}
	for q, v := range values {
		d.Values.Set(q, v)
	}
	s.GPUs.GPUDetails = []sample.GPUDetail{{GPU: "GPU-0"}, d}
	return s
}

func TestGPUUse(t *testing.T) {
	a := detailed(0, map[sample.GPUQuantity]float64{
		sample.GPUPCIeReceived: 1e9, sample.GPUPCIeSent: 5e9, sample.GPUNVLinkSent: 10,
		sample.GPUThrottledPower: 3, sample.GPUThrottledHWThermal: 1, sample.GPUThrottledThermal: 9,
	})
	b := detailed(2*time.Second, map[sample.GPUQuantity]float64{
		sample.GPUTensorActive: 0.11, sample.GPUSMActive: 0, sample.GPUDRAMActive: math.NaN(),
		sample.GPUPCIeReceived: 3e9, sample.GPUPCIeReceiveRate: 7,
		sample.GPUPCIeSent: 1, sample.GPUPCIeSendRate: 8, // restarted
		sample.GPUNVLinkReceived: 5, sample.GPUNVLinkSent: 10,
		sample.GPUThrottledPower: 3.2, sample.GPUThrottledHWThermal: 2.5, sample.GPUThrottledThermal: 0,
	})
	u := Between(a, b).GPUs[0].GPUUse
	if !is(u.TensorActive, 0.11) || !is(u.SMActive, 0) || u.DRAMActive != nil || u.SMOccupancy != nil || u.Encoder != nil {
		t.Errorf("got %+v, want the shares of the later reading", u)
	}
	if !is(u.PCIeReceived, 1e9) || !is(u.PCIeSent, 8) || u.NVLinkReceived != nil || !is(u.NVLinkSent, 0) ||
		!is(u.Throttled, 0.75) ||
		u.ThrottledBy != "hw_thermal" {
		t.Errorf("got %+v, want the rates of the counters", u)
	}
	for name, before := range map[string]*sample.Snapshot{
		"none before": gpuAt(0, sample.GPU{ID: "GPU-1"}), "nothing new": b,
	} {
		if u := Between(before, b).GPUs[0].GPUUse; u.Throttled != nil || u.NVLinkSent != nil || !is(u.PCIeReceived, 7) ||
			!is(u.TensorActive, 0.11) {
			t.Errorf("%s: got %+v, want no rates of counters", name, u)
		}
	}
	b.GPUs.GPUs[0].Status = sample.GPULost
	if u := Between(a, b).GPUs[0].GPUUse; u != (GPUUse{}) {
		t.Errorf("lost: got %+v, want nothing", u)
	}
}
