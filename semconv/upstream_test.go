package semconv_test

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	before "go.opentelemetry.io/otel/semconv/v1.38.0"
	upstream "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/hwconv"
	"go.opentelemetry.io/otel/semconv/v1.43.0/processconv"
	"go.opentelemetry.io/otel/semconv/v1.43.0/systemconv"

	"github.com/stallspan/stallspan/semconv"
)

// What the registry calls OpenTelemetry's must be so, by OpenTelemetry's own Go packages.
func TestUpstreamMetrics(t *testing.T) {
	for _, test := range []struct {
		ours   semconv.Metric
		theirs interface {
			Name() string
			Unit() string
		}
	}{
		{semconv.HwEnergy, hwconv.Energy{}},
		{semconv.HwErrors, hwconv.Errors{}},
		{semconv.HwFanSpeedRatio, hwconv.FanSpeedRatio{}},
		{semconv.HwGPUIO, hwconv.GpuIO{}},
		{semconv.HwGPUMemoryLimit, hwconv.GpuMemoryLimit{}},
		{semconv.HwGPUMemoryUsage, hwconv.GpuMemoryUsage{}},
		{semconv.HwGPUMemoryUtilization, hwconv.GpuMemoryUtilization{}},
		{semconv.HwGPUUtilization, hwconv.GpuUtilization{}},
		{semconv.HwPhysicalDiskEnduranceUtilization, hwconv.PhysicalDiskEnduranceUtilization{}},
		{semconv.HwPhysicalDiskSize, hwconv.PhysicalDiskSize{}},
		{semconv.HwPhysicalDiskSmart, hwconv.PhysicalDiskSmart{}},
		{semconv.HwPower, hwconv.Power{}},
		{semconv.HwStatus, hwconv.Status{}},
		{semconv.HwTemperature, hwconv.Temperature{}},
		{semconv.HwTemperatureLimit, hwconv.TemperatureLimit{}},
		{semconv.ProcessDiskIO, processconv.DiskIO{}},
		{semconv.ProcessNetworkIO, processconv.NetworkIO{}},
		{semconv.SystemCPUTime, systemconv.CPUTime{}},
		{semconv.SystemCPUUtilization, systemconv.CPUUtilization{}},
		{semconv.SystemDiskIO, systemconv.DiskIO{}},
		{semconv.SystemDiskIOTime, systemconv.DiskIOTime{}},
		{semconv.SystemDiskMerged, systemconv.DiskMerged{}},
		{semconv.SystemDiskOperationTime, systemconv.DiskOperationTime{}},
		{semconv.SystemDiskOperations, systemconv.DiskOperations{}},
	} {
		if test.ours.Name != test.theirs.Name() || test.ours.Unit != test.theirs.Unit() {
			t.Errorf("%s in %s is not upstream's %s in %s",
				test.ours.Name, test.ours.Unit, test.theirs.Name(), test.theirs.Unit())
		}
	}
}

func TestUpstreamAttributes(t *testing.T) {
	for ours, theirs := range map[attribute.Key]attribute.Key{
		semconv.ContainerIDKey:                  upstream.ContainerIDKey,
		semconv.K8SContainerNameKey:             upstream.K8SContainerNameKey,
		semconv.K8SNamespaceNameKey:             upstream.K8SNamespaceNameKey,
		semconv.K8SPodNameKey:                   upstream.K8SPodNameKey,
		semconv.K8SPodUIDKey:                    upstream.K8SPodUIDKey,
		semconv.ProcessExecutableNameKey:        upstream.ProcessExecutableNameKey,
		semconv.ProcessOwnerKey:                 upstream.ProcessOwnerKey,
		semconv.CPULogicalNumberKey:             upstream.CPULogicalNumberKey,
		semconv.CPUModeKey:                      upstream.CPUModeKey,
		semconv.DiskIODirectionKey:              upstream.DiskIODirectionKey,
		semconv.ErrorTypeKey:                    upstream.ErrorTypeKey,
		semconv.FilePathKey:                     upstream.FilePathKey,
		semconv.HostIDKey:                       upstream.HostIDKey,
		semconv.HostNameKey:                     upstream.HostNameKey,
		semconv.HwDriverVersionKey:              upstream.HwDriverVersionKey,
		semconv.HwFirmwareVersionKey:            upstream.HwFirmwareVersionKey,
		semconv.HwPhysicalDiskSmartAttributeKey: upstream.HwPhysicalDiskSmartAttributeKey,
		semconv.HwPhysicalDiskStateKey:          upstream.HwPhysicalDiskStateKey,
		semconv.HwPhysicalDiskTypeKey:           upstream.HwPhysicalDiskTypeKey,
		semconv.HwSerialNumberKey:               upstream.HwSerialNumberKey,
		semconv.HwGPUTaskKey:                    upstream.HwGpuTaskKey,
		semconv.HwLimitTypeKey:                  upstream.HwLimitTypeKey,
		semconv.HwModelKey:                      upstream.HwModelKey,
		semconv.HwParentKey:                     upstream.HwParentKey,
		semconv.NetworkIODirectionKey:           upstream.NetworkIODirectionKey,
		semconv.HwSensorLocationKey:             upstream.HwSensorLocationKey,
		semconv.HwStateKey:                      upstream.HwStateKey,
		semconv.HwTypeKey:                       upstream.HwTypeKey,
		semconv.HwVendorKey:                     upstream.HwVendorKey,
		semconv.HwIDKey:                         upstream.HwIDKey,
		semconv.HwNameKey:                       upstream.HwNameKey,
		semconv.PeerServiceKey:                  before.PeerServiceKey,
		semconv.ServicePeerNameKey:              upstream.ServicePeerNameKey,
		semconv.ProcessExitCodeKey:              upstream.ProcessExitCodeKey,
		semconv.ProcessPIDKey:                   upstream.ProcessPIDKey,
		semconv.ServiceInstanceIDKey:            upstream.ServiceInstanceIDKey,
		semconv.ServiceNameKey:                  upstream.ServiceNameKey,
	} {
		if ours != theirs {
			t.Errorf("%s is not upstream's %s", ours, theirs)
		}
	}
	for ours, theirs := range map[attribute.KeyValue]attribute.KeyValue{
		semconv.CPUModeUser:                  upstream.CPUModeUser,
		semconv.CPUModeNice:                  upstream.CPUModeNice,
		semconv.CPUModeSystem:                upstream.CPUModeSystem,
		semconv.CPUModeIdle:                  upstream.CPUModeIdle,
		semconv.CPUModeIOWait:                upstream.CPUModeIOWait,
		semconv.CPUModeInterrupt:             upstream.CPUModeInterrupt,
		semconv.CPUModeSteal:                 upstream.CPUModeSteal,
		semconv.DiskIODirectionRead:          upstream.DiskIODirectionRead,
		semconv.DiskIODirectionWrite:         upstream.DiskIODirectionWrite,
		semconv.HwGPUTaskGeneral:             upstream.HwGpuTaskGeneral,
		semconv.HwGPUTaskEncoder:             upstream.HwGpuTaskEncoder,
		semconv.HwGPUTaskDecoder:             upstream.HwGpuTaskDecoder,
		semconv.HwLimitTypeHighDegraded:      upstream.HwLimitTypeHighDegraded,
		semconv.HwLimitTypeHighCritical:      upstream.HwLimitTypeHighCritical,
		semconv.HwLimitTypeMax:               upstream.HwLimitTypeMax,
		semconv.HwStateOK:                    upstream.HwStateOk,
		semconv.HwStateDegraded:              upstream.HwStateDegraded,
		semconv.HwStateFailed:                upstream.HwStateFailed,
		semconv.HwStatePredictedFailure:      upstream.HwStatePredictedFailure,
		semconv.NetworkIODirectionReceive:    upstream.NetworkIODirectionReceive,
		semconv.NetworkIODirectionTransmit:   upstream.NetworkIODirectionTransmit,
		semconv.HwPhysicalDiskStateRemaining: upstream.HwPhysicalDiskStateRemaining,
		semconv.HwTypeGPU:                    upstream.HwTypeGpu,
		semconv.HwTypePhysicalDisk:           upstream.HwTypePhysicalDisk,
	} {
		if ours != theirs {
			t.Errorf("%s=%s is not upstream's %s=%s", ours.Key, ours.Value.AsString(), theirs.Key, theirs.Value.AsString())
		}
	}
}
