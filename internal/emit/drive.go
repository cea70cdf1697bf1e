package emit

import (
	"cmp"
	"math"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// driveMet is what is remembered of a drive from one collection to the next: what its counters were, and what it said of
// itself before it fell silent, so that its series keep their names.
type driveMet struct {
	asked          time.Time
	counts         [sample.DriveQuantities]counted
	firmware, kind string
}

// driveKey is one drive at one place: of a drive with two ways to it, each has its own.
type driveKey struct{ id, device string }

func newDriveMet(driveKey) driveMet { return driveMet{} }

// drives tells of every drive that is known by an identifier.
//
// Values carry the time at which the drive was asked; a drive that sleeps, vanished or could not be read has none. Their
// counters are of the drive's whole life, of whose beginning nobody tells the time: they start at boot, like all others
// here. That is never after the reading, it does not move from one reading to the next, and a restarted program gives the
// same. What a counter was at boot is then part of its first value, and of no difference between two.
//
// States are those of now: a drive vanishes at a moment at which it cannot be asked.
func (m *Metrics) drives(b *builder, now *sample.Snapshot) {
	all := now.Drives.Drives
	for i := range all {
		d := &all[i]
		if d.ID == "" || seenBefore(all[:i], d) {
			continue
		}
		met := m.met.of(driveKey{d.ID, d.Device}, newDriveMet)
		met.firmware, met.kind = cmp.Or(d.Firmware, met.firmware), cmp.Or(driveKind(d), met.kind)
		of := m.sets.drives.of(driveName{d.ID, d.Device, d.Model, d.Serial, met.firmware, met.kind}, newDriveSets)
		if state, known := driveState(d); known {
			b.time, b.start = newest(now), now.Boot
			b.states(state, &of.states)
		}
		if answered(d, now.Drives.At.Wall) {
			b.time = d.At
			b.drive(d, met, now.Boot, of)
		}
	}
	b.start = now.Boot
}

// seenBefore says whether a list has the same drive at the same place: behind a RAID controller, two that do not tell
// what they are.
func seenBefore(list []sample.Drive, d *sample.Drive) bool {
	return find(list, func(x *sample.Drive) bool { return x.ID == d.ID && x.Device == d.Device }) != nil
}

// driveKind is hw.physical_disk.type. What neither says that it spins nor that it wears out may be either.
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

// driveState is the drive's state, where one is known. A drive that sleeps was well when it was asked last; one that was
// not keeps that state while it sleeps.
func driveState(d *sample.Drive) (state int, known bool) {
	switch d.Status {
	case sample.DriveOK:
		return isOK, true
	case sample.DriveDegraded:
		return isDegraded, true
	case sample.DriveFailing:
		return willFail, true
	case sample.DriveFailed, sample.DriveVanished:
		return isFailed, true
	case sample.DriveAsleep:
		return isOK, d.Values != sample.DriveValues{} // else it was never asked
	}
	return 0, false
}

// mostRound bounds how long before the end of a round of questions a drive of it has answered. An earlier answer is
// of another round, ten minutes before: the drive sleeps.
const mostRound = 5 * time.Minute

// answered says whether a drive answered in the round that ended then. One that is unread may have told something, as its
// temperature, but nothing of its health.
func answered(d *sample.Drive, round time.Time) bool {
	switch d.Status {
	case sample.DriveAsleep, sample.DriveVanished:
		return false
	case sample.DriveUnread:
		if d.Values.Empty() {
			return false
		}
	}
	return !d.At.IsZero() && round.Sub(d.At) < mostRound
}

func (b *builder) drive(d *sample.Drive, met *driveMet, boot time.Time, of *driveSets) {
	if d.Size > 0 {
		b.start = boot
		b.int(&semconv.HwPhysicalDiskSize, d.Size, of.plain)
	}
	for q, v := range d.Values.All() {
		to := &drivePlaces[q]
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if to.smart != "" {
			b.int(&semconv.HwPhysicalDiskSmart, whole(math.Round(v*to.times)), of.smart[q])
		}
		if to.metric == nil {
			continue
		}
		b.start = boot
		if to.metric.Kind == semconv.Counter {
			b.start = met.counts[q].start(v, met.asked, boot)
		}
		switch {
		case q == sample.DriveWear:
			b.float(to.metric, max(0, 1-v), of.places[q])
		case to.metric.Int:
			b.int(to.metric, whole(v), of.places[q])
		default:
			b.float(to.metric, v, of.places[q])
		}
	}
	met.asked = b.time
}
