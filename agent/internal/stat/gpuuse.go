package stat

import (
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// GPUUse is what of an accelerator was used, and what held it back. What its details do not tell is nil. A share is of
// the last second or so before the interval's end, except where it says otherwise: the chip keeps no sums of those.
type GPUUse struct {
	SMActive     *float64 `json:"sm_active,omitempty"`     // share of the time in which multiprocessors had work, over all of them
	SMOccupancy  *float64 `json:"sm_occupancy,omitempty"`  // share of the warps that fit
	TensorActive *float64 `json:"tensor_active,omitempty"` // share of the time in which tensor cores worked
	DRAMActive   *float64 `json:"dram_active,omitempty"`   // share of the memory's bandwidth
	Encoder      *float64 `json:"encoder,omitempty"`
	Decoder      *float64 `json:"decoder,omitempty"`

	// Bytes a second over the interval; over PCIe, where the GPU does not count them, as its driver measured last.
	PCIeReceived   *float64 `json:"pcie_received_bytes_per_s,omitempty"`
	PCIeSent       *float64 `json:"pcie_sent_bytes_per_s,omitempty"`
	NVLinkReceived *float64 `json:"nvlink_received_bytes_per_s,omitempty"`
	NVLinkSent     *float64 `json:"nvlink_sent_bytes_per_s,omitempty"`

	ClockSM    *float64 `json:"sm_clock_hz,omitempty"`
	PowerLimit *float64 `json:"power_limit_watts,omitempty"`

	// Throttled is the share of the interval in which the clocks were held down, by the reason that did so longest:
	// several can at once. ThrottledBy is that reason, as in sample.GPUValues without "throttled_"; "" where none did.
	Throttled   *float64 `json:"throttled,omitempty"`
	ThrottledBy string   `json:"throttled_by,omitempty"`
}

// The counters of throttling lie side by side, a reason each.
const firstThrottle, lastThrottle = sample.GPUThrottledPower, sample.GPUThrottledReliability

// useOf is what one GPU's details tell; a and b are nil where there are none.
func useOf(a, b *sample.GPUDetail) (u GPUUse) {
	if b == nil {
		return u
	}
	now := func(q sample.GPUQuantity) *float64 {
		if v, told := b.Values.Get(q); told {
			return finite(v)
		}
		return nil
	}
	u = GPUUse{
		SMActive: now(sample.GPUSMActive), SMOccupancy: now(sample.GPUSMOccupancy),
		TensorActive: now(sample.GPUTensorActive), DRAMActive: now(sample.GPUDRAMActive),
		Encoder: now(sample.GPUEncoder), Decoder: now(sample.GPUDecoder),
		PCIeReceived: now(sample.GPUPCIeReceiveRate), PCIeSent: now(sample.GPUPCIeSendRate),
		ClockSM: now(sample.GPUClockSM), PowerLimit: now(sample.GPUPowerLimit),
	}
	if a == nil || b.At <= a.At {
		return u
	}
	d := details{&a.Values, &b.Values, b.At - a.At}
	u.PCIeReceived = either(d.perSecond(sample.GPUPCIeReceived), u.PCIeReceived)
	u.PCIeSent = either(d.perSecond(sample.GPUPCIeSent), u.PCIeSent)
	u.NVLinkReceived, u.NVLinkSent = d.perSecond(sample.GPUNVLinkReceived), d.perSecond(sample.GPUNVLinkSent)
	for q := firstThrottle; q <= lastThrottle; q++ {
		if held := d.perSecond(q); held != nil && (u.Throttled == nil || *held > *u.Throttled) {
			u.Throttled = new(min(1, *held))
			if *held > 0 {
				u.ThrottledBy = strings.TrimPrefix(q.String(), "throttled_")
			}
		}
	}
	return u
}

func either(v, otherwise *float64) *float64 {
	if v != nil {
		return v
	}
	return otherwise
}

// details are two of one GPU, and the time between them, which is more than zero.
type details struct {
	before, after *sample.GPUValues
	elapsed       time.Duration
}

// perSecond is how fast a counter grew, nil where it was not told twice or began again in between.
func (d details) perSecond(q sample.GPUQuantity) *float64 {
	a, was := d.before.Get(q)
	b, is := d.after.Get(q)
	if !was || !is || b < a {
		return nil
	}
	return finite((b - a) / d.elapsed.Seconds())
}

func detailOf(s *sample.Sample, gpu string) *sample.GPUDetail {
	for i := range s.GPUDetails {
		if s.GPUDetails[i].GPU == gpu {
			return &s.GPUDetails[i]
		}
	}
	return nil
}
