//go:build linux && cgo

package gpu

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/stallspan/stallspan/internal/sample"
)

func (l *library) count() (int, error) {
	gpus, err := get(l, "nvmlDeviceGetCount", l.DeviceGetCount)
	if err != nil {
		return 0, err
	}
	count := gpus
	for i := range min(gpus, maxDevices) {
		if device, err := l.at(i); err == nil {
			count += len(l.migDevices(device))
		}
	}
	return count, nil
}

func (l *library) at(i int) (nvml.Device, error) {
	return get(l, "nvmlDeviceGetHandleByIndex", func() (nvml.Device, nvml.Return) { return l.DeviceGetHandleByIndex(i) })
}

func (l *library) devices() ([]device, error) {
	count, err := get(l, "nvmlDeviceGetCount", l.DeviceGetCount)
	if err != nil {
		return nil, err
	}
	var list []device
	var problems sample.Problems
	for i := range min(count, maxDevices) {
		d, err := l.at(i)
		var parentGPU *handle
		if err == nil {
			parentGPU, err = l.device(d, i, nil)
		}
		if isSessionEnded(err) {
			return nil, err
		}
		if err != nil {
			problems.Add(fmt.Errorf("GPU %d: %w", i, err))
			continue
		}
		list = append(list, parentGPU)
		for _, d := range l.migDevices(parentGPU.device) {
			mig, err := l.device(d, i, parentGPU)
			if err != nil {
				problems.Add(fmt.Errorf("a MIG device of GPU %d: %w", i, err))
				continue
			}
			list = append(list, mig)
		}
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
