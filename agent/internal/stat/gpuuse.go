package stat

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// GPUUse holds the use of the parts of a GPU, and what limited it. Unknown values are nil. Shares are over about the
// last second of the interval, unless stated otherwise, because the GPU has no counters for them.
type GPUUse struct {
	SMActive     *float64 `json:"sm_active,omitempty"`     // share of time with work, mean over the multiprocessors
	SMOccupancy  *float64 `json:"sm_occupancy,omitempty"`  // share of the maximum number of warps
	TensorActive *float64 `json:"tensor_active,omitempty"` // share of time with tensor cores active
	DRAMActive   *float64 `json:"dram_active,omitempty"`   // share of the memory bandwidth
	Encoder      *float64 `json:"encoder,omitempty"`
	Decoder      *float64 `json:"decoder,omitempty"`

	// Bytes/s over the interval. Without PCIe counters, the last measurement of the driver.
	PCIeReceived   *float64 `json:"pcie_received_bytes_per_s,omitempty"`
	PCIeSent       *float64 `json:"pcie_sent_bytes_per_s,omitempty"`
	NVLinkReceived *float64 `json:"nvlink_received_bytes_per_s,omitempty"`
	NVLinkSent     *float64 `json:"nvlink_sent_bytes_per_s,omitempty"`

	ClockSM    *float64 `json:"sm_clock_hz,omitempty"`
	PowerLimit *float64 `json:"power_limit_watts,omitempty"`

	// Throttled is the share of the interval with reduced clocks, for the longest of the reasons, which may overlap.
	// ThrottledBy is that reason, as in sample.GPUValues without "throttled_", or "".
	Throttled   *float64 `json:"throttled,omitempty"`
	ThrottledBy string   `json:"throttled_by,omitempty"`
}

// The throttle counters are consecutive, one for each reason.
const firstThrottle, lastThrottle = sample.GPUThrottledPower, sample.GPUThrottledReliability

// useOf returns the use from the details of one GPU at both readings, which may be nil.
func useOf(a, b *sample.GPUDetail) (u GPUUse) {
	if b == nil {
		return u
	}
	now := func(q sample.GPUQuantity) *float64 {
		if v, ok := b.Values.Get(q); ok {
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
	u.PCIeReceived = cmp.Or(d.perSecond(sample.GPUPCIeReceived), u.PCIeReceived)
	u.PCIeSent = cmp.Or(d.perSecond(sample.GPUPCIeSent), u.PCIeSent)
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

// details are those of one GPU at both readings, with the time between them, which is positive.
type details struct {
	before, after *sample.GPUValues
	elapsed       time.Duration
}

// perSecond returns the rate of a counter, or nil if it is unknown or restarted.
func (d details) perSecond(q sample.GPUQuantity) *float64 {
	a, okBefore := d.before.Get(q)
	b, okAfter := d.after.Get(q)
	if !okBefore || !okAfter || b < a {
		return nil
	}
	return finite((b - a) / d.elapsed.Seconds())
}

func detailOf(s *sample.Sample, gpu string) *sample.GPUDetail {
	if i := slices.IndexFunc(s.GPUDetails, func(d sample.GPUDetail) bool { return d.GPU == gpu }); i >= 0 {
		return &s.GPUDetails[i]
	}
	return nil
}
