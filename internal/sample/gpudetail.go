package sample

import "time"

// GPUDetail is what a GPU tells about once a second, beside what each of its rows holds.
type GPUDetail struct {
	GPU    string        `json:"gpu"`            // GPU.ID
	At     time.Duration `json:"at"`             // Stamp.Mono at which it was asked
	Values GPUValues     `json:"values"`         // what it and its driver tell
	XIDs   []XID         `json:"xids,omitempty"` // by code; never changed once given
}

// XID counts one kind of the errors that the driver reports as events (nvmlEventTypeXidCriticalError), since the program
// looks for them.
type XID struct {
	Code  int    `json:"code"` // as in NVIDIA's table of XID errors
	Count uint64 `json:"count"`
}

// GPUQuantity is something that a GPU may tell of itself. Ratios are shares of 1, times seconds, sizes bytes, frequencies
// hertz. A counter only grows until the driver is loaded again.
type GPUQuantity uint8

// What is said "since the reading before" is the mean of the time between two readings, so that the sum over readings is
// exact (NVML's GPM: nvmlGpmMetricsGet of two samples).
const (
	GPUEncoder    GPUQuantity = iota // ratio of time busy, over the driver's own period (nvmlDeviceGetEncoderUtilization)
	GPUDecoder                       // likewise (nvmlDeviceGetDecoderUtilization)
	GPUController                    // ratio of time in which memory was read or written (nvmlUtilization_t.memory)

	GPUSMActive     // ratio, mean over the SMs, since the reading before (NVML_GPM_METRIC_SM_UTIL)
	GPUSMOccupancy  // ratio of the warps that would fit (NVML_GPM_METRIC_SM_OCCUPANCY)
	GPUTensorActive // ratio of time in which tensor cores worked (NVML_GPM_METRIC_ANY_TENSOR_UTIL)
	GPUDRAMActive   // ratio of the memory's bandwidth (NVML_GPM_METRIC_DRAM_BW_UTIL)

	GPUPCIeReceived    // counter, bytes (NVML_FI_DEV_PCIE_COUNT_RX_BYTES, its wraps undone)
	GPUPCIeSent        // counter, bytes (NVML_FI_DEV_PCIE_COUNT_TX_BYTES)
	GPUPCIeReceiveRate // bytes a second, only where the counters are missing (GPM, or nvmlDeviceGetPcieThroughput)
	GPUPCIeSendRate    // likewise
	GPUNVLinkReceived  // counter, bytes, all links (NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX)
	GPUNVLinkSent      // likewise (…_TX)

	GPUPowerLimit        // watts that are enforced now (nvmlDeviceGetEnforcedPowerLimit)
	GPUTemperatureMemory // degrees Celsius (NVML_FI_DEV_MEMORY_TEMP)
	GPUSlowdownAt        // degrees Celsius at which the chip slows down (NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
	GPUShutdownAt        // degrees Celsius at which it switches off
	GPUMemorySlowdownAt  // degrees Celsius of the memory at which it slows down (…_MEM_MAX)
	GPUFan               // ratio of full speed

	GPUClockSM       // hertz, now (nvmlDeviceGetClockInfo)
	GPUClockMemory   //
	GPUClockGraphics //
	GPUClockVideo    //

	GPUThrottledPower       // counter, seconds below the wanted clocks: the power cap (NVML_FI_DEV_CLOCKS_EVENT_REASON_…, or PERF_POLICY_…)
	GPUThrottledThermal     // the driver's thermal limit
	GPUThrottledHWThermal   // the chip's own thermal slowdown
	GPUThrottledPowerBrake  // the power supply's brake
	GPUThrottledSyncBoost   // another GPU of its group
	GPUThrottledBoard       // the board's limit
	GPUThrottledReliability // the voltage's limit

	GPUErrorsCorrected   // counter, memory errors that ECC mended (nvmlDeviceGetTotalEccErrors, volatile)
	GPUErrorsUncorrected // counter, those that it could not
	GPUPCIeReplays       // counter (nvmlDeviceGetPcieReplayCounter)
	GPURowsRemapped      // counter, rows of memory that were replaced (nvmlDeviceGetRemappedRows)
	GPUPagesRetired      // counter, pages that are no longer used, of GPUs that retire those (nvmlDeviceGetRetiredPages)
	GPURepairPending     // 1 where a reset is needed for a row or page to be replaced
	GPURepairFailed      // 1 where a row could not be replaced: the GPU has to be

	GPUMemoryReserved // bytes that the driver keeps for itself (nvmlMemory_v2_t.reserved)

	GPUQuantities // how many there are
)

// gpuWords name the quantities in recordings.
var gpuWords = [GPUQuantities]string{
	"encoder", "decoder", "controller",
	"sm_active", "sm_occupancy", "tensor_active", "dram_active",
	"pcie_received", "pcie_sent", "pcie_receive_rate", "pcie_send_rate", "nvlink_received", "nvlink_sent",
	"power_limit", "temperature_memory", "slowdown_at", "shutdown_at", "memory_slowdown_at", "fan",
	"clock_sm", "clock_memory", "clock_graphics", "clock_video",
	"throttled_power", "throttled_thermal", "throttled_hw_thermal", "throttled_power_brake", "throttled_sync_boost",
	"throttled_board", "throttled_reliability",
	"errors_corrected", "errors_uncorrected", "pcie_replays", "rows_remapped", "pages_retired", "repair_pending", "repair_failed",
	"memory_reserved",
}

func (q GPUQuantity) String() string {
	if q >= GPUQuantities {
		return ""
	}
	return gpuWords[q]
}

// GPUValues is what a GPU tells.
type GPUValues = Values[GPUQuantity]
