//go:build linux && cgo

package gpu

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/stallspan/stallspan/internal/sample"
)

func (l *library) count() (int, error) {
	whole, err := get(l, fnCount, l.DeviceGetCount)
	if err != nil {
		return 0, err
	}
	count := whole
	for i := range min(whole, mostCards) {
		if device, err := l.at(i); err == nil {
			count += len(l.slices(device))
		}
	}
	return count, nil
}

func (l *library) at(i int) (nvml.Device, error) {
	return get(l, fnHandle, func() (nvml.Device, nvml.Return) { return l.DeviceGetHandleByIndex(i) })
}

func (l *library) devices() ([]device, error) {
	count, err := get(l, fnCount, l.DeviceGetCount)
	if err != nil {
		return nil, err
	}
	var list []device
	var problems sample.Problems
	for i := range min(count, mostCards) {
		d, err := l.at(i)
		var whole *handle
		if err == nil {
			whole, err = l.device(d, i, nil)
		}
		if isEnded(err) {
			return nil, err
		}
		if err != nil {
			problems.Add(fmt.Errorf("GPU %d: %w", i, err))
			continue
		}
		list = append(list, whole)
		for _, d := range l.slices(whole.device) {
			slice, err := l.device(d, i, whole)
			if err != nil {
				problems.Add(fmt.Errorf("a MIG slice of GPU %d: %w", i, err))
				continue
			}
			list = append(list, slice)
		}
	}
	return list, problems.Err()
}

// slices are the MIG devices that a GPU is cut into.
func (l *library) slices(whole nvml.Device) []nvml.Device {
	if !l.has(fnMigMode, fnMigCount, fnMigHandle) {
		return nil
	}
	mode, err := get(l, fnMigMode, func() (int, nvml.Return) {
		mode, _, ret := whole.GetMigMode()
		return mode, ret
	})
	if err != nil || mode != nvml.DEVICE_MIG_ENABLE {
		return nil
	}
	most, err := get(l, fnMigCount, whole.GetMaxMigDeviceCount)
	if err != nil {
		return nil
	}
	var list []nvml.Device
	for i := range min(most, mostCards) {
		slice, err := get(l, fnMigHandle, func() (nvml.Device, nvml.Return) { return whole.GetMigDeviceHandleByIndex(i) })
		if err == nil {
			list = append(list, slice)
		}
	}
	return list
}
