package emit

import (
	"cmp"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// driveState is the state of a drive that is kept between collections: its counters, and its firmware and kind, so that
// a drive that no longer answers keeps its series.
type driveState struct {
	readAt         time.Time
	counts         [sample.DriveQuantities]counted
	firmware, kind string
}

// driveKey is a drive with a path to it. A drive with two paths has two keys.
type driveKey struct{ id, device string }

// drives emits every drive with an identifier.
//
// Values have the time at which the drive was read. A drive that sleeps, vanished or could not be read has none. The
// counters cover the drive's whole life, but the time of its beginning is unknown, so they start at boot like all
// others. This start is before every reading, is the same for every reading, and survives a restart of the program. The
// value at boot is part of the first value, and cancels out in differences.
//
// States are current: a drive vanishes at a time when it cannot be read.
func (m *Metrics) drives(b *builder, now *sample.Snapshot) {
	all := now.Drives.Drives
	for i := range all {
		d := &all[i]
		// Behind a RAID controller, two drives may have no identity of their own.
		same := find(all[:i], func(x *sample.Drive) bool { return x.ID == d.ID && x.Device == d.Device })
		if d.ID == "" || same != nil {
			continue
		}
		state := m.drive.get(driveKey{d.ID, d.Device}, nil)
		state.firmware, state.kind = cmp.Or(d.Firmware, state.firmware), cmp.Or(driveKind(d), state.kind)
		sets := m.sets.drives.get(driveName{d.ID, d.Device, d.Model, d.Serial, state.firmware, state.kind}, newDriveSets)
		if status, known := driveStatus(d); known {
			b.time, b.start = newest(now), now.Boot
			b.status(status, &sets.states)
		}
		if answered(d, now.Drives.At.Wall) {
			b.time = d.At
			b.drive(d, state, now.Boot, sets)
		}
	}
	b.start = now.Boot
}

// driveKind returns hw.physical_disk.type. A drive that reports neither rotation nor wear may be of either type.
func driveKind(d *sample.Drive) string {
	_, wears := d.Values.Get(sample.DriveWear)
	switch {
	case d.Rotates:
		return "HDD"
	case wears || d.Protocol == "NVMe":
		return "SSD"
	}
	return ""
}

// driveStatus returns the state of hw.status, if it is known. A sleeping drive was healthy at its last reading: one
// that was not keeps its status while it sleeps.
func driveStatus(d *sample.Drive) (state int, known bool) {
	switch d.Status {
	case sample.DriveOK:
		return stateOK, true
	case sample.DriveDegraded:
		return stateDegraded, true
	case sample.DriveFailing:
		return statePredictedFailure, true
	case sample.DriveFailed, sample.DriveVanished:
		return stateFailed, true
	case sample.DriveAsleep:
		return stateOK, d.Values != sample.DriveValues{} // a drive without values was never read
	}
	return 0, false
}

// maxRound bounds the duration of a round of readings. An older reading is from the round before, ten minutes earlier:
// the drive sleeps.
const maxRound = 5 * time.Minute

// answered reports whether a drive answered in the round that ended at this time. A drive with the status "unread" may
// have reported something, such as its temperature, but nothing about its health.
func answered(d *sample.Drive, round time.Time) bool {
	switch d.Status {
	case sample.DriveAsleep, sample.DriveVanished:
		return false
	case sample.DriveUnread:
		if d.Values.Empty() {
			return false
		}
	}
	return !d.At.IsZero() && round.Sub(d.At) < maxRound
}

func (b *builder) drive(d *sample.Drive, state *driveState, boot time.Time, sets *driveSets) {
	if d.Size > 0 {
		b.start = boot
		b.int(&semconv.HwPhysicalDiskSize, d.Size, sets.plain)
	}
	for q, v := range d.Values.All() {
		to := &drivePlaces[q]
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if to.smart != "" {
			b.int(&semconv.HwPhysicalDiskSmart, toCount(math.Round(v*to.times)), sets.smart[q])
		}
		if to.metric == nil {
			continue
		}
		b.start = boot
		if to.metric.Kind == semconv.Counter {
			b.start = state.counts[q].start(v, state.readAt, boot)
		}
		if q == sample.DriveWear {
			v = max(0, 1-v)
		}
		b.number(to.metric, v, sets.places[q])
	}
	state.readAt = b.time
}

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
		"Percentage Used", 100,
		in(&semconv.HwPhysicalDiskEnduranceUtilization, semconv.HwPhysicalDiskStateRemaining),
	},
	sample.DriveSpare:    {smart: "Available Spare", times: 100},
	sample.DriveSpareMin: {smart: "Available Spare Threshold", times: 100},
	sample.DriveCritical: {smart: "Critical Warning", times: 1},

	sample.DriveReallocated:           {"Reallocated Sectors Count", 1, driveErrors(semconv.ErrorTypeReallocatedSector)},
	sample.DrivePending:               {"Current Pending Sector Count", 1, driveErrors(semconv.ErrorTypePendingSector)},
	sample.DriveOfflineUncorrectable:  {smart: "Offline Uncorrectable Sector Count", times: 1},
	sample.DriveReportedUncorrectable: {"Reported Uncorrectable Errors", 1, driveErrors(semconv.ErrorTypeUncorrectable)},
	sample.DriveCommandTimeouts:       {smart: "Command Timeout", times: 1},
	sample.DriveCRCErrors:             {"UltraDMA CRC Error Count", 1, driveErrors(semconv.ErrorTypeCRC)},
	sample.DriveMediaErrors:           {"Media and Data Integrity Errors", 1, driveErrors(semconv.ErrorTypeMedia)},

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
	s.states = attrs.states(semconv.HwTypePhysicalDisk)
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
