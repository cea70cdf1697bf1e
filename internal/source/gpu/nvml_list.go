//go:build linux && cgo

package gpu

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/stallspan/stallspan/internal/sample"
)

func (l *library) count() (int, error) { return get(l, "nvmlDeviceGetCount", l.DeviceGetCount) }

func (l *library) list(index int) ([]device, error) {
	d, err := get(l, "nvmlDeviceGetHandleByIndex", func() (nvml.Device, nvml.Return) {
		return l.DeviceGetHandleByIndex(index)
	})
	if err != nil {
		return nil, err
	}
	parentGPU, err := l.device(d, index, nil)
	if err != nil {
		return nil, err
	}
	list := []device{parentGPU}
	var problems sample.Problems
	for _, d := range l.migDevices(d) {
		mig, err := l.device(d, index, parentGPU)
		if err != nil {
			problems.Add(fmt.Errorf("a MIG device: %w", err))
			continue
		}
		list = append(list, mig)
	}
	return list, problems.Err()
}

// migDevices returns the MIG devices of a GPU.
func (l *library) migDevices(parentGPU nvml.Device) []nvml.Device {
	if !l.has("nvmlDeviceGetMigMode", "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex") {
		return nil
	}
	mode, err := get(l, "nvmlDeviceGetMigMode", func() (int, nvml.Return) {
		mode, _, ret := parentGPU.GetMigMode()
		return mode, ret
	})
	if err != nil || mode != nvml.DEVICE_MIG_ENABLE {
		return nil
	}
	limit, err := get(l, "nvmlDeviceGetMaxMigDeviceCount", parentGPU.GetMaxMigDeviceCount)
	if err != nil {
		return nil
	}
	var list []nvml.Device
	for i := range min(limit, maxDevices) {
		mig, err := get(l, "nvmlDeviceGetMigDeviceHandleByIndex", func() (nvml.Device, nvml.Return) {
			return parentGPU.GetMigDeviceHandleByIndex(i)
		})
		if err == nil {
			list = append(list, mig)
		}
	}
	return list
}
