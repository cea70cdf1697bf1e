package amd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Device is a card with what can be read of it.
type Device struct {
	Info        sample.GPU
	Supported   []string
	Unsupported []string
	Busy        bool     // its busy time is known
	Asleep      bool     // so that nothing else was read
	Notes       []string // what its files mean, one sentence each
	Err         error    // what could not be read and what to do, or nil
}

var errSilent = errors.New("its files do not return: look for amdgpu in the kernel log")

// Probe reads everything of each card once, until ctx ends.
func Probe(ctx context.Context, o Options) (devices []Device) {
	cards := list(filepath.Join("/", o.Root))
	reads := make([]task[reading], len(cards))
	for i, c := range cards {
		if !c.isAsleep() {
			reads[i].start(0, func() reading { return c.read(request{rest: true, slow: true}) })
		}
	}
	for i, c := range cards {
		d := Device{Info: c.info, Asleep: !reads[i].isUnderWay()}
		longest := time.Hour
		if until, ok := ctx.Deadline(); ok {
			longest = time.Until(until)
		}
		if r, ok := reads[i].wait(longest); ok {
			d.describe(&r, filepath.Join("/", o.Root, "sys/class/kfd/kfd/proc"))
		} else if !d.Asleep {
			d.Err = errSilent
		}
		devices = append(devices, d)
	}
	return devices
}

// describe says what a reading has. kfd is the driver's list of processes.
func (d *Device) describe(r *reading, kfd string) {
	has := func(f sample.GPUFields) bool { return r.gauges.Has&f != 0 }
	shows := func(q sample.GPUQuantity) bool {
		_, ok := r.detail.Get(q)
		_, slow := r.slow.Get(q)
		return ok || slow
	}
	_, err := os.Stat(kfd)
	summed := r.table.has[activitySum]
	d.Busy = summed || r.averages
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"utilization", d.Busy}, {"memory", has(sample.HasMemory)}, {"temperature", has(sample.HasTemperature)},
		{"power", has(sample.HasPower)}, {"energy", has(sample.HasEnergy)}, {"PCIe link", has(sample.HasLink)},
		{"processes", err == nil}, {"clocks", shows(sample.GPUClockGraphics)},
		{"throttle time", r.table.has[throttlers] || r.table.has[powerCounts]},
		{"memory temperature", shows(sample.GPUTemperatureMemory)}, {"power limit", shows(sample.GPUPowerLimit)},
		{"ECC errors", shows(sample.GPUErrorsUncorrected)},
	} {
		if f.has {
			d.Supported = append(d.Supported, f.name)
		} else {
			d.Unsupported = append(d.Unsupported, f.name)
		}
	}
	d.Notes = []string{"It is read from files of amdgpu, which was not verified on a card."}
	if d.Busy && !summed {
		d.Notes = append(d.Notes, "Its busy time is an average at each second: the uncertainty of windows includes that.")
	}
	switch {
	case errors.Is(r.parsed, errAPU):
		d.Notes = append(d.Notes, fmt.Sprintf("%s: busy time, temperature, power and clocks are from other files. It shares "+
			"the machine's memory: what it uses is without the page cache.", r.parsed))
	case r.err == nil && r.problem() != nil:
		d.Notes = append(d.Notes, fmt.Sprintf("%s; meanwhile other files are read.", r.parsed))
	}
	d.Err = r.err
}
