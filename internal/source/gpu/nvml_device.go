//go:build linux && cgo

package gpu

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/stallspan/stallspan/internal/sample"
)

// maxProcesses bounds the processes of one GPU.
const maxProcesses = 1024

// handle is one GPU or MIG device.
type handle struct {
	*library
	identity
	device    nvml.Device
	parentGPU *handle // of a MIG device; nil for a GPU

	values []nvml.FieldValue // buffer of fields
	gpm    gpmPair
}

func (l *library) device(d nvml.Device, index int, parentGPU *handle) (*handle, error) {
	uuid, err := get(l, "nvmlDeviceGetUUID", d.GetUUID)
	if isUnsupported(err) || err == nil && uuid == "" {
		return nil, errors.New("it has no UUID to identify it by")
	}
	if err != nil {
		return nil, err
	}
	product, _ := get(l, "nvmlDeviceGetName", d.GetName)
	h := &handle{library: l, identity: identity{id: text(uuid), name: text(product), index: index, maker: nvidia},
		device: d, parentGPU: parentGPU}
	if parentGPU != nil {
		h.parent = parentGPU.id
		return h, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session.uuids != nil {
		l.session.uuids[d] = h.id
	}
	return h, nil
}

// text returns what the driver wrote without what is no text: it goes to terminals and backends.
func text(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
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
		points[i] = utilSample{timestamp: s.TimeStamp, value: decodeValue(kind, s.SampleValue)}
	}
	return points, nil
}

func (h *handle) buffer(since uint64) (kind nvml.ValueType, samples []nvml.Sample, err error) {
	err = h.call(callSamples, func() (ret nvml.Return) {
		kind, samples, ret = h.device.GetSamples(nvml.GPU_UTILIZATION_SAMPLES, since)
		return ret
	})
	return kind, samples, err
}

// decodeValue reads an nvmlValue_t, a union in the machine's byte order. It returns NaN for an unknown type, and where
// all bits are set (NVML_VALUE_NOT_AVAILABLE).
func decodeValue(kind nvml.ValueType, value [8]byte) float64 {
	bits := binary.NativeEndian.Uint64(value[:])
	half := binary.NativeEndian.Uint32(value[:4])
	switch kind {
	case nvml.VALUE_TYPE_DOUBLE:
		return math.Float64frombits(bits)
	case nvml.VALUE_TYPE_UNSIGNED_INT:
		return known(half)
	case nvml.VALUE_TYPE_SIGNED_INT:
		return float64(int32(half))
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG:
		return known(bits)
	case nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return float64(int64(bits))
	case nvml.VALUE_TYPE_UNSIGNED_SHORT:
		return known(binary.NativeEndian.Uint16(value[:2]))
	default:
		return math.NaN()
	}
}

// known returns a number of the driver, or NaN if all its bits are set: it is not available. An int has 32 bits there.
func known[T ~int | ~int32 | ~uint16 | ~uint32 | ~uint64](n T) float64 {
	if _, converted := any(n).(int); n == ^T(0) || converted && uint64(n) == math.MaxUint32 {
		return math.NaN()
	}
	return float64(n)
}

// numbers are what one function returns.
type numbers [3]float64

// functions have numbers for several rows, by their ids.
var functions = map[string]func(h *handle) (numbers, error){
	callMemory: (*handle).memory,
	callRows:   (*handle).remapped,
	callPages:  (*handle).retired,
	callRates: func(h *handle) (numbers, error) {
		rates, err := get(h.library, callRates, h.device.GetUtilizationRates)
		return numbers{known(rates.Gpu), known(rates.Memory)}, err
	},
}

// single are the functions with one number, called for each row. Some take its id as their argument.
var single = map[string]func(d nvml.Device, id uint32) (float64, nvml.Return){
	callTemperature:                       number(degrees),
	"nvmlDeviceGetTotalEnergyConsumption": number(nvml.Device.GetTotalEnergyConsumption),
	"nvmlDeviceGetPowerUsage":             number(nvml.Device.GetPowerUsage),
	"nvmlDeviceGetCurrPcieLinkWidth":      number(nvml.Device.GetCurrPcieLinkWidth),
	"nvmlDeviceGetCurrPcieLinkGeneration": number(nvml.Device.GetCurrPcieLinkGeneration),
	"nvmlDeviceGetMaxPcieLinkWidth":       number(nvml.Device.GetMaxPcieLinkWidth),
	"nvmlDeviceGetMaxPcieLinkGeneration":  number(nvml.Device.GetMaxPcieLinkGeneration),
	"nvmlDeviceGetEnforcedPowerLimit":     number(nvml.Device.GetEnforcedPowerLimit),
	"nvmlDeviceGetFanSpeed":               number(nvml.Device.GetFanSpeed),
	"nvmlDeviceGetPcieReplayCounter":      number(nvml.Device.GetPcieReplayCounter),

	callReasons: number(nvml.Device.GetCurrentClocksEventReasons),
	"nvmlDeviceGetCurrentClocksThrottleReasons": number(nvml.Device.GetCurrentClocksThrottleReasons),

	"nvmlDeviceGetEncoderUtilization": func(d nvml.Device, _ uint32) (float64, nvml.Return) {
		n, _, ret := d.GetEncoderUtilization()
		return known(n), ret
	},
	"nvmlDeviceGetDecoderUtilization": func(d nvml.Device, _ uint32) (float64, nvml.Return) {
		n, _, ret := d.GetDecoderUtilization()
		return known(n), ret
	},
	callClock: func(d nvml.Device, id uint32) (float64, nvml.Return) {
		n, ret := d.GetClockInfo(nvml.ClockType(id))
		return known(n), ret
	},
	callViolation: func(d nvml.Device, id uint32) (float64, nvml.Return) {
		times, ret := d.GetViolationStatus(nvml.PerfPolicyType(id))
		return known(times.ViolationTime), ret
	},
	callErrors: func(d nvml.Device, id uint32) (float64, nvml.Return) {
		n, ret := d.GetTotalEccErrors(nvml.MemoryErrorType(id), nvml.VOLATILE_ECC)
		return known(n), ret
	},
	callThreshold: func(d nvml.Device, id uint32) (float64, nvml.Return) {
		n, ret := d.GetTemperatureThreshold(nvml.TemperatureThresholds(id))
		return known(n), ret
	},
}

func number[T ~int | ~int32 | ~uint32 | ~uint64](f func(nvml.Device) (T, nvml.Return)) func(nvml.Device, uint32) (
	float64, nvml.Return) {
	return func(d nvml.Device, _ uint32) (float64, nvml.Return) {
		n, ret := f(d)
		return known(n), ret
	}
}

// degrees are signed.
func degrees(d nvml.Device) (int32, nvml.Return) {
	n, ret := d.GetTemperature(nvml.TEMPERATURE_GPU)
	return int32(n), ret
}

// one calls a function with one number.
func (h *handle) one(call string, id uint32) (n float64, err error) {
	err = h.call(call, func() (ret nvml.Return) {
		n, ret = single[call](h.device, id)
		return ret
	})
	return n, err
}

// read calls a function for the numbers of a list.
func (h *handle) read(call string, list []answer) (err error) {
	switch call {
	case callFields:
		return h.fields(list)
	case callGPM:
		return h.metrics(list)
	case callEvents:
		return h.registerEvents()
	}
	var all numbers
	several := functions[call]
	if several != nil {
		all, err = several(h)
	}
	for i := range list {
		a, id := &list[i], rows[list[i].row].id
		switch {
		case several != nil:
			a.number = all[id]
		case call == callThreshold:
			a.number, a.err = h.threshold(id)
		default:
			a.number, a.err = h.one(call, id)
		}
		a.check()
	}
	return err
}

// check notes that a number is not available.
func (a *answer) check() {
	if a.err == nil && math.IsNaN(a.number) {
		a.err = codeNotFound
	}
}

// memory prefers version 2, which does not count memory that the driver reserves as used.
func (h *handle) memory() (numbers, error) {
	second, err := get(h.library, "nvmlDeviceGetMemoryInfo_v2", h.device.GetMemoryInfo_v2)
	if err == nil || isLost(err) || isSessionEnded(err) {
		return numbers{known(second.Total), known(second.Used), known(second.Reserved)}, err
	}
	first, err := get(h.library, callMemory, h.device.GetMemoryInfo)
	return numbers{known(first.Total), known(first.Used), math.NaN()}, err
}

// margins are the field values by which newer GPUs report limits of temperature. nvml.h announces that GPUs since Ada
// will report limits only relative to the current margin: the field value is the margin at which the limit is reached.
var margins = map[nvml.TemperatureThresholds]uint32{
	nvml.TEMPERATURE_THRESHOLD_SLOWDOWN: nvml.FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT,
	nvml.TEMPERATURE_THRESHOLD_SHUTDOWN: nvml.FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT,
}

// threshold is accurate to a degree where it is computed from margins: the temperature may change between the calls.
func (h *handle) threshold(id uint32) (float64, error) {
	kind := nvml.TemperatureThresholds(id)
	degrees, err := h.one(callThreshold, id)
	if margins[kind] == 0 || !isUnsupported(err) {
		return degrees, err
	}
	margin, err := get(h.library, "nvmlDeviceGetMarginTemperature", h.device.GetMarginTemperature)
	if err != nil {
		return 0, err
	}
	now, err := h.one(callTemperature, 0)
	if err != nil {
		return 0, err
	}
	values := []nvml.FieldValue{{FieldId: margins[kind]}}
	if err := h.fieldValues(values); err != nil {
		return 0, err
	}
	at := decodeValue(nvml.ValueType(values[0].ValueType), values[0].Value)
	return now + float64(margin.MarginTemperature) - at, errorOf(nvml.Return(values[0].NvmlReturn))
}

// remapped reads the remapped rows of the memory, on GPUs since Ampere.
func (h *handle) remapped() (n numbers, err error) {
	err = h.call(callRows, func() nvml.Return {
		corrected, uncorrected, pending, failed, ret := h.device.GetRemappedRows()
		n = numbers{known(corrected) + known(uncorrected), asNumber(pending), asNumber(failed)}
		return ret
	})
	return n, err
}

// retired reads the retired pages of the memory, on GPUs before Ampere.
func (h *handle) retired() (numbers, error) {
	count := 0
	for _, cause := range []nvml.PageRetirementCause{nvml.PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
		nvml.PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR} {
		list, err := get(h.library, callPages, func() ([]uint64, nvml.Return) { return h.device.GetRetiredPages(cause) })
		if err != nil {
			return numbers{}, err
		}
		count += len(list)
	}
	pending, err := get(h.library, "nvmlDeviceGetRetiredPagesPendingStatus", h.device.GetRetiredPagesPendingStatus)
	if isUnsupported(err) {
		return numbers{float64(count), math.NaN()}, nil
	}
	return numbers{float64(count), asNumber(pending == nvml.FEATURE_ENABLED)}, err
}

func asNumber(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

func (h *handle) fieldValues(values []nvml.FieldValue) error {
	return h.call(callFields, func() nvml.Return { return h.device.GetFieldValues(values) })
}

// fields also records the latency of each value that the driver reports.
func (h *handle) fields(list []answer) error {
	if len(h.values) < len(list) {
		h.values = make([]nvml.FieldValue, len(list))
	}
	values := h.values[:len(list)]
	for i, v := range list {
		p := &rows[v.row]
		values[i] = nvml.FieldValue{FieldId: p.id}
		if p.traits&allLinks != 0 {
			values[i].ScopeId = math.MaxUint32 // the sum of them (nvml.h)
		}
	}
	if err := h.fieldValues(values); err != nil {
		return err
	}
	for i, got := range values {
		v := &list[i]
		kind := nvml.ValueType(got.ValueType)
		if v.err = errorOf(nvml.Return(got.NvmlReturn)); v.err != nil {
			continue
		}
		v.number, v.narrow = decodeValue(kind, got.Value), kind == nvml.VALUE_TYPE_UNSIGNED_INT
		v.check()
		h.latencies.add(rows[v.row].name, time.Duration(got.LatencyUsec)*time.Microsecond)
	}
	return nil
}

// processes returns compute and graphics processes. A process that is both is listed once.
func (h *handle) processes() ([]sample.GPUProcess, error) {
	compute, err := get(h.library, callProcesses, h.device.GetComputeRunningProcesses)
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
