package emit

import (
	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// drivePlace is the metric, or the two metrics, of a quantity of a drive.
type drivePlace struct {
	smart string  // attribute of hw.physical_disk.smart; "" for none
	times float64 // factor to the raw value: shares are percentages there
	place         // the other metric; empty for none
}

func driveErrors(kind attribute.KeyValue) place {
	return in(&semconv.HwErrors, semconv.HwTypePhysicalDisk, kind)
}

// driveSensor is one sensor of a drive. The drive's own temperature, which it derives from its sensors, has no
// location.
func driveSensor(name string) place {
	return in(&semconv.HwTemperature, semconv.HwSensorLocationKey.String(name))
}

// drivePlaces has the place of each quantity. Wear is emitted as the remaining endurance. It is read-only.
var drivePlaces = [sample.DriveQuantities]drivePlace{
	sample.DriveTemperature:      {place: in(&semconv.HwTemperature)},
	sample.DriveTemperatureLimit: {place: in(&semconv.HwTemperatureLimit, semconv.HwLimitTypeHighDegraded)},
	sample.DrivePowerOn:          {place: in(&semconv.PhysicalDiskPowerOnTime)},
	sample.DrivePowerCycles:      {smart: "Power Cycle Count", times: 1},
	sample.DriveWear: {
		smart: "Percentage Used", times: 100,
		place: in(&semconv.HwPhysicalDiskEnduranceUtilization, semconv.HwPhysicalDiskStateRemaining),
	},
	sample.DriveSpare:    {smart: "Available Spare", times: 100},
	sample.DriveSpareMin: {smart: "Available Spare Threshold", times: 100},
	sample.DriveCritical: {smart: "Critical Warning", times: 1},

	sample.DriveReallocated: {
		smart: "Reallocated Sectors Count", times: 1,
		place: driveErrors(semconv.ErrorTypeReallocatedSector),
	},
	sample.DrivePending: {
		smart: "Current Pending Sector Count", times: 1,
		place: driveErrors(semconv.ErrorTypePendingSector),
	},
	sample.DriveOfflineUncorrectable: {smart: "Offline Uncorrectable Sector Count", times: 1},
	sample.DriveReportedUncorrectable: {
		smart: "Reported Uncorrectable Errors", times: 1,
		place: driveErrors(semconv.ErrorTypeUncorrectable),
	},
	sample.DriveCommandTimeouts: {smart: "Command Timeout", times: 1},
	sample.DriveCRCErrors: {
		smart: "UltraDMA CRC Error Count", times: 1,
		place: driveErrors(semconv.ErrorTypeCRC),
	},
	sample.DriveMediaErrors: {
		smart: "Media and Data Integrity Errors", times: 1,
		place: driveErrors(semconv.ErrorTypeMedia),
	},

	sample.DriveRead:    {place: in(&semconv.PhysicalDiskIO, semconv.DiskIODirectionRead)},
	sample.DriveWritten: {place: in(&semconv.PhysicalDiskIO, semconv.DiskIODirectionWrite)},

	sample.DriveSensor1: {place: driveSensor("sensor_1")},
	sample.DriveSensor2: {place: driveSensor("sensor_2")},
	sample.DriveSensor3: {place: driveSensor("sensor_3")},
	sample.DriveSensor4: {place: driveSensor("sensor_4")},
	sample.DriveSensor5: {place: driveSensor("sensor_5")},
	sample.DriveSensor6: {place: driveSensor("sensor_6")},
	sample.DriveSensor7: {place: driveSensor("sensor_7")},
	sample.DriveSensor8: {place: driveSensor("sensor_8")},
}
