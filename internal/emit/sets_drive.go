package emit

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// driveName has the attributes of all points of a drive.
type driveName struct{ id, device, model, serial, firmware, kind string }

type driveSets struct {
	plain  attribute.Set
	states [4]attribute.Set
	smart  [sample.DriveQuantities]attribute.Set // for hw.physical_disk.smart
	places [sample.DriveQuantities]attribute.Set // for the other metrics
}

func newDriveSets(n driveName) (s driveSets) {
	attrs := list{semconv.HwIDKey.String(UTF8(n.id)), semconv.SystemDeviceNameKey.String(UTF8(n.device))}
	attrs.text(semconv.HwNameKey, n.device)
	attrs.text(semconv.HwModelKey, n.model)
	attrs.text(semconv.HwSerialNumberKey, n.serial)
	attrs.text(semconv.HwFirmwareVersionKey, n.firmware)
	attrs.text(semconv.HwPhysicalDiskTypeKey, n.kind)
	s.plain = attrs.with()
	s.states = [4]attribute.Set{
		stateOK:               attrs.with(semconv.HwTypePhysicalDisk, semconv.HwStateOK),
		stateDegraded:         attrs.with(semconv.HwTypePhysicalDisk, semconv.HwStateDegraded),
		stateFailed:           attrs.with(semconv.HwTypePhysicalDisk, semconv.HwStateFailed),
		statePredictedFailure: attrs.with(semconv.HwTypePhysicalDisk, semconv.HwStatePredictedFailure),
	}
	for q := range drivePlaces {
		to := &drivePlaces[q]
		if to.smart != "" {
			s.smart[q] = attrs.with(semconv.HwPhysicalDiskSmartAttributeKey.String(to.smart))
		}
		if to.metric != nil {
			s.places[q] = attrs.with(to.with...)
		}
	}
	return s
}
