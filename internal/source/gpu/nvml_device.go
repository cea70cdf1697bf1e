//go:build linux && cgo

package gpu

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/stallspan/stallspan/internal/sample"
)

// maxProcesses bounds the processes of one GPU.
const maxProcesses = 1024

// handle is one GPU or MIG device. Its methods call the functions of nvml.h with the same names.
type handle struct {
	*library
	device    nvml.Device
	uuid      string
	product   string
	position  int
	parentGPU *handle // of a MIG device; nil for a GPU

	values []nvml.FieldValue // buffer of fields
	gpm    gpmPair
}

func (l *library) device(d nvml.Device, index int, parentGPU *handle) (*handle, error) {
	uuid, err := get(l, "nvmlDeviceGetUUID", d.GetUUID)
	if err != nil {
		return nil, err
	}
	if uuid == "" {
		return nil, errors.New("it has no UUID to identify it by")
	}
	h := &handle{library: l, device: d, uuid: uuid, position: index, parentGPU: parentGPU}
	h.product, _ = get(l, "nvmlDeviceGetName", d.GetName)
	return h, nil
}

func (h *handle) id() string   { return h.uuid }
func (h *handle) name() string { return h.product }
func (h *handle) index() int   { return h.position }

func (h *handle) parent() string {
	if h.parentGPU == nil {
		return ""
	}
	return h.parentGPU.uuid
}

func (h *handle) samples(since uint64) ([]utilSample, error) {
	kind, samples, err := h.buffer(since)
	if errors.Is(err, codeInsufficientSize) { // a sample was added between the two calls of nvmlDeviceGetSamples
		kind, samples, err = h.buffer(since)
	}
	if err != nil {
		return nil, err
	}
	points := make([]utilSample, len(samples))
	for i, s := range samples {
		points[i] = utilSample{s.TimeStamp, decodeValue(kind, s.SampleValue)}
	}
	return points, nil
}

func (h *handle) buffer(since uint64) (kind nvml.ValueType, samples []nvml.Sample, err error) {
	err = h.call("nvmlDeviceGetSamples", func() (ret nvml.Return) {
		kind, samples, ret = h.device.GetSamples(nvml.GPU_UTILIZATION_SAMPLES, since)
		return ret
	})
	return kind, samples, err
}

// decodeValue reads an nvmlValue_t, a union in the machine's byte order.
func decodeValue(kind nvml.ValueType, value [8]byte) float64 {
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

func (h *handle) utilizationRates() (busy, controller float64, err error) {
	rates, err := get(h.library, "nvmlDeviceGetUtilizationRates", h.device.GetUtilizationRates)
	return float64(rates.Gpu), float64(rates.Memory), err
}

// memory prefers version 2, which does not count memory that the driver reserves as used.
func (h *handle) memory() (memory, error) {
	second, err := get(h.library, "nvmlDeviceGetMemoryInfo_v2", h.device.GetMemoryInfo_v2)
	if err == nil || isLost(err) || isSessionEnded(err) {
		return memory{second.Used, second.Total, second.Reserved, true}, err
	}
	first, err := get(h.library, "nvmlDeviceGetMemoryInfo", h.device.GetMemoryInfo)
	return memory{used: first.Used, total: first.Total}, err
}

func (h *handle) temperature() (float64, error) {
	degrees, err := get(h.library, "nvmlDeviceGetTemperature", func() (uint32, nvml.Return) {
		return h.device.GetTemperature(nvml.TEMPERATURE_GPU)
	})
	return float64(int32(degrees)), err
}

func (h *handle) power() (float64, error) {
	milliwatts, err := get(h.library, "nvmlDeviceGetPowerUsage", h.device.GetPowerUsage)
	return float64(milliwatts) / 1000, err
}

func (h *handle) energy() (float64, error) {
	millijoules, err := get(h.library, "nvmlDeviceGetTotalEnergyConsumption", h.device.GetTotalEnergyConsumption)
	return float64(millijoules) / 1000, err
}

func (h *handle) pcieLink() (width, generation int, err error) {
	if width, err = get(h.library, "nvmlDeviceGetCurrPcieLinkWidth", h.device.GetCurrPcieLinkWidth); err != nil {
		return 0, 0, err
	}
	generation, err = get(h.library, "nvmlDeviceGetCurrPcieLinkGeneration", h.device.GetCurrPcieLinkGeneration)
	return width, generation, err
}

func (h *handle) maxPCIeLink() (width, generation int, err error) {
	if width, err = get(h.library, "nvmlDeviceGetMaxPcieLinkWidth", h.device.GetMaxPcieLinkWidth); err != nil {
		return 0, 0, err
	}
	generation, err = get(h.library, "nvmlDeviceGetMaxPcieLinkGeneration", h.device.GetMaxPcieLinkGeneration)
	return width, generation, err
}

// processes returns compute and graphics processes. A process that is both is listed once.
func (h *handle) processes() ([]sample.GPUProcess, error) {
	compute, err := get(h.library, "nvmlDeviceGetComputeRunningProcesses", h.device.GetComputeRunningProcesses)
	if err != nil {
		return nil, err
	}
	graphics, err := get(h.library, "nvmlDeviceGetGraphicsRunningProcesses", h.device.GetGraphicsRunningProcesses)
	if errors.Is(err, codeNotSupported) || errors.Is(err, codeFunctionNotFound) {
		err = nil
	}
	var list []sample.GPUProcess
	seen := map[uint32]bool{}
	for _, p := range append(compute, graphics...) {
		if seen[p.Pid] || len(list) == maxProcesses {
			continue
		}
		seen[p.Pid] = true
		process := sample.GPUProcess{PID: int(p.Pid)}
		if p.UsedGpuMemory != math.MaxUint64 { // NVML_VALUE_NOT_AVAILABLE
			process.Memory, process.Has = p.UsedGpuMemory, true
		}
		list = append(list, process)
	}
	return list, err
}
