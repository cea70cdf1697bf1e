//go:build linux && cgo

package gpu

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
)

// A value of the driver is a number of its type. None that is not a number is within the range of a quantity.
func FuzzDecodeValue(f *testing.F) {
	for kind := range uint32(8) {
		f.Add(kind, uint64(1<<63|7))
		f.Add(kind, math.Float64bits(math.NaN()))
	}
	f.Fuzz(func(t *testing.T, kind uint32, bits uint64) {
		var value [8]byte
		binary.NativeEndian.PutUint64(value[:], bits)
		got := decodeValue(nvml.ValueType(kind), value)
		if kind != uint32(nvml.VALUE_TYPE_DOUBLE) && !math.IsNaN(got) && (got != math.Trunc(got) || math.Abs(got) > 1<<64) {
			t.Errorf("type %d, bits %x: got %v, want a whole number", kind, bits, got)
		}
		for q, limits := range ranges {
			if limits.contains(got) && (math.IsNaN(got) || math.IsInf(got, 0)) {
				t.Errorf("quantity %d takes %v", q, got)
			}
		}
	})
}

// However many devices a driver claims to have, the list of them ends, and has no more than are read.
func FuzzCounts(f *testing.F) {
	f.Add(8, 7, uint32(0))
	f.Add(-1, -1, uint32(nvml.ERROR_UNKNOWN))
	f.Add(math.MaxInt32, math.MaxInt32, uint32(nvml.ERROR_INVALID_ARGUMENT))
	machine := dgxa100.New()
	l := mocked(machine, "nvmlDeviceGetMaxMigDeviceCount", "nvmlDeviceGetMigDeviceHandleByIndex")
	first := machine.Devices[0]
	f.Fuzz(func(t *testing.T, gpus, slices int, failure uint32) {
		machine.DeviceGetCountFunc = func() (int, nvml.Return) { return gpus, nvml.SUCCESS }
		machine.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
			if i > 0 && failure != 0 {
				return nil, nvml.Return(failure)
			}
			return first, nvml.SUCCESS
		}
		gpu, ok := first.(*dgxa100.Device)
		if !ok {
			t.Fatalf("got a %T", first)
		}
		gpu.GetMigModeFunc = func() (int, int, nvml.Return) { return nvml.DEVICE_MIG_ENABLE, 0, nvml.SUCCESS }
		gpu.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return slices, nvml.SUCCESS }
		gpu.GetMigDeviceHandleByIndexFunc = func(int) (nvml.Device, nvml.Return) { return nil, nvml.Return(failure | 1) }
		list, _ := l.devices()
		if most := max(0, min(gpus, maxDevices)); len(list) > most {
			t.Errorf("got %d devices of %d, want at most %d", len(list), gpus, most)
		}
		if n, err := l.count(); err == nil && n != gpus {
			t.Errorf("got a count of %d, want %d", n, gpus)
		}
	})
}
