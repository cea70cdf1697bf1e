package emit

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// The sensors of a GPU.
var (
	sensorChip   = semconv.HwSensorLocationKey.String("gpu")
	sensorMemory = semconv.HwSensorLocationKey.String("memory")
)

// place is the metric of a quantity, with the attributes that it has in addition to the device's own.
type place struct {
	metric *semconv.Metric
	with   []attribute.KeyValue
}

func in(metric *semconv.Metric, with ...attribute.KeyValue) place { return place{metric, with} }

// places has the place of each quantity except for the repairs, which are part of hw.status. It is read-only.
var places = [sample.GPUQuantities]place{
	sample.GPUEncoder:    in(&semconv.HwGPUUtilization, semconv.HwGPUTaskEncoder),
	sample.GPUDecoder:    in(&semconv.HwGPUUtilization, semconv.HwGPUTaskDecoder),
	sample.GPUController: in(&semconv.GPUMemoryControllerUtilization),

	sample.GPUSMActive:     in(&semconv.GPUSMUtilization),
	sample.GPUSMOccupancy:  in(&semconv.GPUSMOccupancy),
	sample.GPUTensorActive: in(&semconv.GPUTensorUtilization),
	sample.GPUDRAMActive:   in(&semconv.GPUDRAMUtilization),

	sample.GPUPCIeReceived:    in(&semconv.HwGPUIO, semconv.NetworkIODirectionReceive),
	sample.GPUPCIeSent:        in(&semconv.HwGPUIO, semconv.NetworkIODirectionTransmit),
	sample.GPUPCIeReceiveRate: in(&semconv.GPUPCIeThroughput, semconv.NetworkIODirectionReceive),
	sample.GPUPCIeSendRate:    in(&semconv.GPUPCIeThroughput, semconv.NetworkIODirectionTransmit),
	sample.GPUNVLinkReceived:  in(&semconv.GPUNVLinkIO, semconv.NetworkIODirectionReceive),
	sample.GPUNVLinkSent:      in(&semconv.GPUNVLinkIO, semconv.NetworkIODirectionTransmit),

	sample.GPUPowerLimit:        in(&semconv.GPUPowerLimit, semconv.HwTypeGPU),
	sample.GPUTemperatureMemory: in(&semconv.HwTemperature, sensorMemory),
	sample.GPUSlowdownAt:        in(&semconv.HwTemperatureLimit, sensorChip, semconv.HwLimitTypeHighDegraded),
	sample.GPUShutdownAt:        in(&semconv.HwTemperatureLimit, sensorChip, semconv.HwLimitTypeHighCritical),
	sample.GPUMemorySlowdownAt:  in(&semconv.HwTemperatureLimit, sensorMemory, semconv.HwLimitTypeHighDegraded),
	sample.GPUFan:               in(&semconv.HwFanSpeedRatio),

	sample.GPUClockSM:       in(&semconv.GPUClockFrequency, semconv.GPUClockDomainSM),
	sample.GPUClockMemory:   in(&semconv.GPUClockFrequency, semconv.GPUClockDomainMemory),
	sample.GPUClockGraphics: in(&semconv.GPUClockFrequency, semconv.GPUClockDomainGraphics),
	sample.GPUClockVideo:    in(&semconv.GPUClockFrequency, semconv.GPUClockDomainVideo),

	sample.GPUThrottledPower:       in(&semconv.GPUClockThrottleTime, semconv.GPUClockThrottleReasonPower),
	sample.GPUThrottledThermal:     in(&semconv.GPUClockThrottleTime, semconv.GPUClockThrottleReasonThermal),
	sample.GPUThrottledHWThermal:   in(&semconv.GPUClockThrottleTime, semconv.GPUClockThrottleReasonHwThermal),
	sample.GPUThrottledPowerBrake:  in(&semconv.GPUClockThrottleTime, semconv.GPUClockThrottleReasonPowerBrake),
	sample.GPUThrottledSyncBoost:   in(&semconv.GPUClockThrottleTime, semconv.GPUClockThrottleReasonSyncBoost),
	sample.GPUThrottledBoard:       in(&semconv.GPUClockThrottleTime, semconv.GPUClockThrottleReasonBoard),
	sample.GPUThrottledReliability: in(&semconv.GPUClockThrottleTime, semconv.GPUClockThrottleReasonReliability),

	sample.GPUErrorsCorrected:   in(&semconv.HwErrors, semconv.HwTypeGPU, semconv.ErrorTypeCorrected),
	sample.GPUErrorsUncorrected: in(&semconv.HwErrors, semconv.HwTypeGPU, semconv.ErrorTypeUncorrected),
	sample.GPUPCIeReplays:       in(&semconv.HwErrors, semconv.HwTypeGPU, semconv.ErrorTypePCIeReplay),
	sample.GPURowsRemapped:      in(&semconv.HwErrors, semconv.HwTypeGPU, semconv.ErrorTypeRowRemap),
	sample.GPUPagesRetired:      in(&semconv.HwErrors, semconv.HwTypeGPU, semconv.ErrorTypeRetiredPage),

	sample.GPUMemoryReserved: in(&semconv.GPUMemoryReserved),
}
