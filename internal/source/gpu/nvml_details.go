//go:build linux && cgo

package gpu

import (
	"errors"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/stallspan/stallspan/internal/sample"
)

// queryCalls are the calls of the queries without code of their own.
var queryCalls = [numQueries]func(h *handle, v *sample.GPUValues) error{
	queryEncoder: single("nvmlDeviceGetEncoderUtilization", sample.GPUEncoder, 0.01, func(d nvml.Device) (uint32, nvml.Return) {
		percent, _, ret := d.GetEncoderUtilization()
		return percent, ret
	}),
	queryDecoder: single("nvmlDeviceGetDecoderUtilization", sample.GPUDecoder, 0.01, func(d nvml.Device) (uint32, nvml.Return) {
		percent, _, ret := d.GetDecoderUtilization()
		return percent, ret
	}),
	queryClockSM:       clockOf(sample.GPUClockSM, nvml.CLOCK_SM),
	queryClockMemory:   clockOf(sample.GPUClockMemory, nvml.CLOCK_MEM),
	queryClockGraphics: clockOf(sample.GPUClockGraphics, nvml.CLOCK_GRAPHICS),
	queryClockVideo:    clockOf(sample.GPUClockVideo, nvml.CLOCK_VIDEO),

	queryViolationPower:       violationOf(sample.GPUThrottledPower, nvml.PERF_POLICY_POWER),
	queryViolationThermal:     violationOf(sample.GPUThrottledThermal, nvml.PERF_POLICY_THERMAL),
	queryViolationSyncBoost:   violationOf(sample.GPUThrottledSyncBoost, nvml.PERF_POLICY_SYNC_BOOST),
	queryViolationBoard:       violationOf(sample.GPUThrottledBoard, nvml.PERF_POLICY_BOARD_LIMIT),
	queryViolationReliability: violationOf(sample.GPUThrottledReliability, nvml.PERF_POLICY_RELIABILITY),

	queryPowerLimit:   single("nvmlDeviceGetEnforcedPowerLimit", sample.GPUPowerLimit, 1e-3, nvml.Device.GetEnforcedPowerLimit),
	queryFan:          single("nvmlDeviceGetFanSpeed", sample.GPUFan, 0.01, nvml.Device.GetFanSpeed),
	queryCorrected:    errorsOf(sample.GPUErrorsCorrected, nvml.MEMORY_ERROR_TYPE_CORRECTED),
	queryUncorrected:  errorsOf(sample.GPUErrorsUncorrected, nvml.MEMORY_ERROR_TYPE_UNCORRECTED),
	queryReplays:      single("nvmlDeviceGetPcieReplayCounter", sample.GPUPCIeReplays, 1, nvml.Device.GetPcieReplayCounter),
	queryRemappedRows: (*handle).rows,
	queryRetiredPages: (*handle).pages,

	querySlowdown: thresholdOf(sample.GPUSlowdownAt, nvml.TEMPERATURE_THRESHOLD_SLOWDOWN,
		nvml.FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT),
	queryShutdown: thresholdOf(sample.GPUShutdownAt, nvml.TEMPERATURE_THRESHOLD_SHUTDOWN,
		nvml.FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT),
	queryMemorySlowdown: thresholdOf(sample.GPUMemorySlowdownAt, nvml.TEMPERATURE_THRESHOLD_MEM_MAX, 0),
}

type integer interface{ ~int | ~uint32 | ~uint64 }

// single makes a call with one number as its result.
func single[T integer](function string, q sample.GPUQuantity, unit float64,
	ask func(nvml.Device) (T, nvml.Return)) func(*handle, *sample.GPUValues) error {
	return func(h *handle, v *sample.GPUValues) error {
		value, err := get(h.library, function, func() (T, nvml.Return) { return ask(h.device) })
		if err == nil {
			v.Set(q, float64(value)*unit)
		}
		return err
	}
}

func clockOf(q sample.GPUQuantity, domain nvml.ClockType) func(*handle, *sample.GPUValues) error {
	return single("nvmlDeviceGetClockInfo", q, 1e6, func(d nvml.Device) (uint32, nvml.Return) { return d.GetClockInfo(domain) })
}

func violationOf(q sample.GPUQuantity, policy nvml.PerfPolicyType) func(*handle, *sample.GPUValues) error {
	return single("nvmlDeviceGetViolationStatus", q, 1e-9, func(d nvml.Device) (uint64, nvml.Return) {
		times, ret := d.GetViolationStatus(policy)
		return times.ViolationTime, ret
	})
}

func errorsOf(q sample.GPUQuantity, kind nvml.MemoryErrorType) func(*handle, *sample.GPUValues) error {
	return single("nvmlDeviceGetTotalEccErrors", q, 1, func(d nvml.Device) (uint64, nvml.Return) {
		return d.GetTotalEccErrors(kind, nvml.VOLATILE_ECC)
	})
}

// thresholdOf reads a temperature limit. nvml.h announces that GPUs since Ada will report limits only relative to the
// current margin: the field value is the margin at which the limit is reached.
func thresholdOf(q sample.GPUQuantity, kind nvml.TemperatureThresholds,
	field uint32) func(*handle, *sample.GPUValues) error {
	ask := single("nvmlDeviceGetTemperatureThreshold", q, 1, func(d nvml.Device) (uint32, nvml.Return) { return d.GetTemperatureThreshold(kind) })
	return func(h *handle, v *sample.GPUValues) error {
		err := ask(h, v)
		if !isUnsupported(err) || field == 0 {
			return err
		}
		limit, err := h.fromMargin(field)
		if err == nil {
			v.Set(q, limit)
		}
		return err
	}
}

// fromMargin is accurate to a degree, because the temperature may change between the calls.
func (h *handle) fromMargin(id uint32) (float64, error) {
	margin, err := get(h.library, "nvmlDeviceGetMarginTemperature", h.device.GetMarginTemperature)
	if err != nil {
		return 0, err
	}
	now, err := h.temperature()
	if err != nil {
		return 0, err
	}
	values := []nvml.FieldValue{{FieldId: id}}
	if err := h.call("nvmlDeviceGetFieldValues", func() nvml.Return { return h.device.GetFieldValues(values) }); err != nil {
		return 0, err
	}
	at := decodeValue(nvml.ValueType(values[0].ValueType), values[0].Value)
	return now + float64(margin.MarginTemperature) - at, errorOf(nvml.Return(values[0].NvmlReturn))
}

func (h *handle) query(q query, into *sample.GPUValues) error { return queryCalls[q](h, into) }

// rows reads the remapped rows of the memory, on GPUs since Ampere.
func (h *handle) rows(v *sample.GPUValues) error {
	var corrected, uncorrected int
	var pending, failed bool
	err := h.call("nvmlDeviceGetRemappedRows", func() (ret nvml.Return) {
		corrected, uncorrected, pending, failed, ret = h.device.GetRemappedRows()
		return ret
	})
	if err == nil {
		v.Set(sample.GPURowsRemapped, float64(corrected)+float64(uncorrected))
		v.Set(sample.GPURepairPending, boolValue(pending))
		v.Set(sample.GPURepairFailed, boolValue(failed))
	}
	return err
}

// pages reads the retired pages of the memory, on GPUs before Ampere.
func (h *handle) pages(v *sample.GPUValues) error {
	count := 0
	for _, cause := range []nvml.PageRetirementCause{nvml.PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
		nvml.PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR} {
		list, err := get(h.library, "nvmlDeviceGetRetiredPages", func() ([]uint64, nvml.Return) { return h.device.GetRetiredPages(cause) })
		if err != nil {
			return err
		}
		count += len(list)
	}
	v.Set(sample.GPUPagesRetired, float64(count))
	pending, err := get(h.library, "nvmlDeviceGetRetiredPagesPendingStatus", h.device.GetRetiredPagesPendingStatus)
	if err == nil {
		v.Set(sample.GPURepairPending, boolValue(pending == nvml.FEATURE_ENABLED))
	}
	if isUnsupported(err) {
		return nil
	}
	return err
}

func boolValue(set bool) float64 {
	if set {
		return 1
	}
	return 0
}

func (h *handle) clockEventReasons() (uint64, error) {
	bits, err := get(h.library, "nvmlDeviceGetCurrentClocksEventReasons", h.device.GetCurrentClocksEventReasons)
	if errors.Is(err, codeFunctionNotFound) {
		bits, err = get(h.library, "nvmlDeviceGetCurrentClocksThrottleReasons", h.device.GetCurrentClocksThrottleReasons)
	}
	return bits, err
}

// fields also records the latency of each value that the driver reports.
func (h *handle) fields(list []field) error {
	if len(h.values) < len(list) {
		h.values = make([]nvml.FieldValue, len(list))
	}
	values := h.values[:len(list)]
	for i, f := range list {
		values[i] = nvml.FieldValue{FieldId: f.id, ScopeId: f.scope}
	}
	if err := h.call("nvmlDeviceGetFieldValues", func() nvml.Return { return h.device.GetFieldValues(values) }); err != nil {
		return err
	}
	for i, v := range values {
		f := &list[i]
		kind := nvml.ValueType(v.ValueType)
		f.err = errorOf(nvml.Return(v.NvmlReturn))
		if f.err != nil {
			continue
		}
		f.value, f.narrow = decodeValue(kind, v.Value), kind == nvml.VALUE_TYPE_UNSIGNED_INT
		h.latencies.add(fieldName(f.id), time.Duration(v.LatencyUsec)*time.Microsecond)
	}
	return nil
}
