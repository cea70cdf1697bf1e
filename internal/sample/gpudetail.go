package sample

import "time"

// GPUDetail holds the quantities of a GPU that are read about once a second.
type GPUDetail struct {
	GPU    string        `json:"gpu"`            // GPU.ID
	At     time.Duration `json:"at"`             // Stamp.Mono of the query
	Values GPUValues     `json:"values"`         // supported by the GPU and its driver
	XIDs   []XID         `json:"xids,omitempty"` // by code; immutable
}

// XID counts the errors with one code that the driver reported as events (nvmlEventTypeXidCriticalError) since the
// program started.
type XID struct {
	Code  int    `json:"code"` // as in NVIDIA's table of XID errors
	Count uint64 `json:"count"`
}

// GPUQuantity is a quantity that a GPU may report: ratios from 0 to 1, seconds, bytes, hertz. A counter grows until the
// driver is loaded again.
type GPUQuantity uint8

// GPM quantities are means over the time between two readings (nvmlGpmMetricsGet of two samples).
const (
	GPUEncoder    GPUQuantity = iota // ratio of busy time, over the driver's period (nvmlDeviceGetEncoderUtilization)
	GPUDecoder                       // the same (nvmlDeviceGetDecoderUtilization)
	GPUController                    // ratio of time with memory accesses (nvmlUtilization_t.memory)

	GPUSMActive     // ratio, mean over the SMs (NVML_GPM_METRIC_SM_UTIL)
	GPUSMOccupancy  // ratio of the maximum number of warps (NVML_GPM_METRIC_SM_OCCUPANCY)
	GPUTensorActive // ratio of time with tensor cores active (NVML_GPM_METRIC_ANY_TENSOR_UTIL)
	GPUDRAMActive   // ratio of the memory's bandwidth (NVML_GPM_METRIC_DRAM_BW_UTIL)

	GPUPCIeReceived    // counter, bytes (NVML_FI_DEV_PCIE_COUNT_RX_BYTES, without wraps)
	GPUPCIeSent        // counter, bytes (NVML_FI_DEV_PCIE_COUNT_TX_BYTES)
	GPUPCIeReceiveRate // bytes/s, only without the counters (GPM, or nvmlDeviceGetPcieThroughput)
	GPUPCIeSendRate    // the same
	GPUNVLinkReceived  // counter, bytes, all links (NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX)
	GPUNVLinkSent      // the same (…_TX)

	GPUPowerLimit        // watts, in force now (nvmlDeviceGetEnforcedPowerLimit)
	GPUTemperatureMemory // degrees Celsius (NVML_FI_DEV_MEMORY_TEMP)
	GPUSlowdownAt        // degrees Celsius at which the chip slows down (NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
	GPUShutdownAt        // degrees Celsius at which it shuts down
	GPUMemorySlowdownAt  // degrees Celsius of the memory (…_MEM_MAX)
	GPUFan               // ratio of full speed

	GPUClockSM       // hertz, now (nvmlDeviceGetClockInfo)
	GPUClockMemory   //
	GPUClockGraphics //
	GPUClockVideo    //

	// Counters of seconds with reduced clocks, by reason (NVML_FI_DEV_CLOCKS_EVENT_REASON_…, or PERF_POLICY_…).
	GPUThrottledPower       // power cap
	GPUThrottledThermal     // thermal limit of the driver
	GPUThrottledHWThermal   // thermal slowdown of the hardware
	GPUThrottledPowerBrake  // external power brake
	GPUThrottledSyncBoost   // sync boost group
	GPUThrottledBoard       // board limit
	GPUThrottledReliability // voltage reliability limit

	GPUErrorsCorrected   // counter, memory errors that ECC corrected (nvmlDeviceGetTotalEccErrors, volatile)
	GPUErrorsUncorrected // counter, memory errors that ECC could not correct
	GPUPCIeReplays       // counter (nvmlDeviceGetPcieReplayCounter)
	GPURowsRemapped      // counter, remapped memory rows (nvmlDeviceGetRemappedRows)
	GPUPagesRetired      // counter, retired memory pages (nvmlDeviceGetRetiredPages)
	GPURepairPending     // 1 if a row or page is replaced at the next reset
	GPURepairFailed      // 1 if a row could not be remapped: the GPU needs replacement

	GPUMemoryReserved // bytes, for the driver (nvmlMemory_v2_t.reserved)

	GPUQuantities // number of quantities
)

// gpuNames are the names in recordings.
var gpuNames = [GPUQuantities]string{
	"encoder", "decoder", "controller",
	"sm_active", "sm_occupancy", "tensor_active", "dram_active",
	"pcie_received", "pcie_sent", "pcie_receive_rate", "pcie_send_rate", "nvlink_received", "nvlink_sent",
	"power_limit", "temperature_memory", "slowdown_at", "shutdown_at", "memory_slowdown_at", "fan",
	"clock_sm", "clock_memory", "clock_graphics", "clock_video",
	"throttled_power", "throttled_thermal", "throttled_hw_thermal", "throttled_power_brake", "throttled_sync_boost",
	"throttled_board", "throttled_reliability",
	"errors_corrected", "errors_uncorrected", "pcie_replays", "rows_remapped", "pages_retired",
	"repair_pending", "repair_failed",
	"memory_reserved",
}

func (q GPUQuantity) String() string {
	if q >= GPUQuantities {
		return ""
	}
	return gpuNames[q]
}

// GPUValues holds the quantities of one GPU.
type GPUValues = Values[GPUQuantity]
