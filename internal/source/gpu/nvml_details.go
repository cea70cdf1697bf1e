//go:build linux && cgo

package gpu

import (
	"errors"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/stallspan/stallspan/internal/sample"
)

// query makes a call of details.
func (h *handle) query(q query, v *sample.GPUValues) error {
	switch q {
	case queryRemappedRows:
		return h.rows(v)
	case queryRetiredPages:
		return h.pages(v)
	}
	s := &callRows[q]
	value, err := h.number(s.name, int(s.id))
	if field := margins[q]; isUnsupported(err) && field != 0 {
		value, err = h.fromMargin(field)
	}
	if err == nil {
		v.Set(s.quantity, value*s.unit)
	}
	return err
}

// number makes a call with one number as its result.
func (h *handle) number(call string, argument int) (value float64, err error) {
	d := h.device
	err = h.call(call, func() nvml.Return {
		var n uint32
		var wide uint64
		var ret nvml.Return
		switch call {
		case "nvmlDeviceGetEncoderUtilization":
			n, _, ret = d.GetEncoderUtilization()
		case "nvmlDeviceGetDecoderUtilization":
			n, _, ret = d.GetDecoderUtilization()
		case "nvmlDeviceGetClockInfo":
			n, ret = d.GetClockInfo(nvml.ClockType(argument))
		case "nvmlDeviceGetViolationStatus":
			var times nvml.ViolationTime
			times, ret = d.GetViolationStatus(nvml.PerfPolicyType(argument))
			wide = times.ViolationTime
		case "nvmlDeviceGetEnforcedPowerLimit":
			n, ret = d.GetEnforcedPowerLimit()
		case "nvmlDeviceGetFanSpeed":
			n, ret = d.GetFanSpeed()
		case "nvmlDeviceGetTotalEccErrors":
			wide, ret = d.GetTotalEccErrors(nvml.MemoryErrorType(argument), nvml.VOLATILE_ECC)
		case "nvmlDeviceGetPcieReplayCounter":
			var replays int
			replays, ret = d.GetPcieReplayCounter()
			wide = uint64(replays)
		case "nvmlDeviceGetTemperatureThreshold":
			n, ret = d.GetTemperatureThreshold(nvml.TemperatureThresholds(argument))
		default:
			return nvml.ERROR_FUNCTION_NOT_FOUND
		}
		value = float64(n) + float64(wide)
		return ret
	})
	return value, err
}

// margins are the field values by which newer GPUs report limits of temperature. nvml.h announces that GPUs since Ada
// will report limits only relative to the current margin: the field value is the margin at which the limit is reached.
var margins = map[query]uint32{
	querySlowdown: nvml.FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT, queryShutdown: nvml.FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT,
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
	if err := h.fieldValues(values); err != nil {
		return 0, err
	}
	at := decodeValue(nvml.ValueType(values[0].ValueType), values[0].Value)
	return now + float64(margin.MarginTemperature) - at, errorOf(nvml.Return(values[0].NvmlReturn))
}

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
		list, err := get(h.library, "nvmlDeviceGetRetiredPages", func() ([]uint64, nvml.Return) {
			return h.device.GetRetiredPages(cause)
		})
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

func (h *handle) fieldValues(values []nvml.FieldValue) error {
	return h.call("nvmlDeviceGetFieldValues", func() nvml.Return { return h.device.GetFieldValues(values) })
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
	if err := h.fieldValues(values); err != nil {
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
