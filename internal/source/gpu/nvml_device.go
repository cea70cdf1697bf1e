//go:build linux && cgo

package gpu

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/stallspan/stallspan/internal/sample"
)

// mostProcesses bounds what is told of one GPU.
const mostProcesses = 1024

// handle is one GPU or MIG slice. Its methods call the functions of nvml.h that have their names.
type handle struct {
	library  *library
	device   nvml.Device
	uuid     string
	product  string
	position int
}

func (l *library) device(d nvml.Device, index int) (device, error) {
	uuid, ret := d.GetUUID()
	if err := failure(ret); err != nil {
		return nil, err
	}
	if uuid == "" {
		return nil, errors.New("it has no UUID, without which it cannot be told from others")
	}
	h := &handle{library: l, device: d, uuid: uuid, position: index}
	if l.has("nvmlDeviceGetName") {
		h.product, _ = d.GetName()
	}
	return h, nil
}

func (h *handle) id() string   { return h.uuid }
func (h *handle) name() string { return h.product }
func (h *handle) index() int   { return h.position }

// call asks for one value, if the library has the function under one of its names.
func call[T any](h *handle, get func() (T, nvml.Return), names ...string) (T, error) {
	if !h.library.has(names...) {
		var none T
		return none, codeFunctionNotFound
	}
	value, ret := get()
	return value, failure(ret)
}

func (h *handle) samples(since uint64) ([]point, error) {
	if !h.library.has("nvmlDeviceGetSamples") {
		return nil, codeFunctionNotFound
	}
	kind, samples, ret := h.device.GetSamples(nvml.GPU_UTILIZATION_SAMPLES, since)
	if ret == nvml.ERROR_INSUFFICIENT_SIZE { // a value was added between counting and fetching
		kind, samples, ret = h.device.GetSamples(nvml.GPU_UTILIZATION_SAMPLES, since)
	}
	if err := failure(ret); err != nil {
		return nil, err
	}
	points := make([]point, len(samples))
	for i, s := range samples {
		points[i] = point{s.TimeStamp, number(kind, s.SampleValue)}
	}
	return points, nil
}

// number reads an nvmlValue_t, a union in the machine's byte order.
func number(kind nvml.ValueType, value [8]byte) float64 {
	bits := binary.NativeEndian.Uint64(value[:])
	half := binary.NativeEndian.Uint32(value[:4])
	switch kind {
	case nvml.VALUE_TYPE_DOUBLE:
		return math.Float64frombits(bits)
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return float64(half)
	case nvml.VALUE_TYPE_SIGNED_INT:
		return float64(int32(half))
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return float64(bits)
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return float64(int64(bits))
	case nvml.VALUE_TYPE_UNSIGNED_SHORT:
		return float64(binary.NativeEndian.Uint16(value[:2]))
	default:
		return math.NaN()
	}
}

func (h *handle) rate() (float64, error) {
	rates, err := call(h, h.device.GetUtilizationRates, "nvmlDeviceGetUtilizationRates")
	return float64(rates.Gpu), err
}

// memory prefers the second version, which leaves what the driver reserves out of what is used.
func (h *handle) memory() (used, total uint64, err error) {
	second, err := call(h, h.device.GetMemoryInfo_v2, "nvmlDeviceGetMemoryInfo_v2")
	if err == nil || isGone(err) || isEnded(err) {
		return second.Used, second.Total, err
	}
	first, err := call(h, h.device.GetMemoryInfo, "nvmlDeviceGetMemoryInfo")
	return first.Used, first.Total, err
}

func (h *handle) temperature() (float64, error) {
	degrees, err := call(h, func() (uint32, nvml.Return) {
		return h.device.GetTemperature(nvml.TEMPERATURE_GPU)
	}, "nvmlDeviceGetTemperature")
	return float64(int32(degrees)), err
}

func (h *handle) power() (float64, error) {
	milliwatts, err := call(h, h.device.GetPowerUsage, "nvmlDeviceGetPowerUsage")
	return float64(milliwatts) / 1000, err
}

func (h *handle) energy() (float64, error) {
	millijoules, err := call(h, h.device.GetTotalEnergyConsumption, "nvmlDeviceGetTotalEnergyConsumption")
	return float64(millijoules) / 1000, err
}

func (h *handle) link() (width, generation int, err error) {
	if width, err = call(h, h.device.GetCurrPcieLinkWidth, "nvmlDeviceGetCurrPcieLinkWidth"); err != nil {
		return 0, 0, err
	}
	generation, err = call(h, h.device.GetCurrPcieLinkGeneration, "nvmlDeviceGetCurrPcieLinkGeneration")
	return width, generation, err
}

func (h *handle) linkMax() (width, generation int, err error) {
	if width, err = call(h, h.device.GetMaxPcieLinkWidth, "nvmlDeviceGetMaxPcieLinkWidth"); err != nil {
		return 0, 0, err
	}
	generation, err = call(h, h.device.GetMaxPcieLinkGeneration, "nvmlDeviceGetMaxPcieLinkGeneration")
	return width, generation, err
}

// processes are those that compute and those that draw. One that does both is told once.
func (h *handle) processes() ([]sample.GPUProcess, error) {
	computing, err := call(h, h.device.GetComputeRunningProcesses, "nvmlDeviceGetComputeRunningProcesses_v3",
		"nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses")
	if err != nil {
		return nil, err
	}
	drawing, err := call(h, h.device.GetGraphicsRunningProcesses, "nvmlDeviceGetGraphicsRunningProcesses_v3",
		"nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses")
	if errors.Is(err, codeNotSupported) || errors.Is(err, codeFunctionNotFound) {
		err = nil
	}
	var list []sample.GPUProcess
	seen := map[uint32]bool{}
	for _, p := range append(computing, drawing...) {
		if seen[p.Pid] || len(list) == mostProcesses {
			continue
		}
		seen[p.Pid] = true
		told := sample.GPUProcess{PID: int(p.Pid)}
		if p.UsedGpuMemory != math.MaxUint64 { // NVML_VALUE_NOT_AVAILABLE
			told.Memory, told.Has = p.UsedGpuMemory, true
		}
		list = append(list, told)
	}
	return list, err
}
