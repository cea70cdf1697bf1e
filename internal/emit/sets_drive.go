package emit

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// driveName is what names a drive, the same on all of its points.
type driveName struct{ id, device, model, serial, firmware, kind string }

type driveSets struct {
	plain  attribute.Set
	states [4]attribute.Set
	smart  [sample.DriveQuantities]attribute.Set // of those that are told as hw.physical_disk.smart
	places [sample.DriveQuantities]attribute.Set // of those that have another place
}

func newDriveSets(n driveName) (s driveSets) {
	attrs := list{semconv.HwIDKey.String(utf8(n.id)), semconv.SystemDeviceNameKey.String(utf8(n.device))}
	attrs.text(semconv.HwNameKey, n.device)
	attrs.text(semconv.HwModelKey, n.model)
	attrs.text(semconv.HwSerialNumberKey, n.serial)
	attrs.text(semconv.HwFirmwareVersionKey, n.firmware)
	attrs.text(semconv.HwPhysicalDiskTypeKey, n.kind)
	s.plain = attrs.with()
	s.states = [4]attribute.Set{
		isOK:       attrs.with(semconv.HwTypePhysicalDisk, semconv.HwStateOK),
		isDegraded: attrs.with(semconv.HwTypePhysicalDisk, semconv.HwStateDegraded),
		isFailed:   attrs.with(semconv.HwTypePhysicalDisk, semconv.HwStateFailed),
		willFail:   attrs.with(semconv.HwTypePhysicalDisk, semconv.HwStatePredictedFailure),
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
