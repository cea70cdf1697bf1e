package smart

import (
	"cmp"
	"fmt"

	"github.com/stallspan/stallspan/internal/sample"
)

// unit is the data unit of NVMe drives: 1000 times 512 bytes.
const unit = 512_000

func (doc *document) nvme(v *sample.DriveValues) {
	log := &doc.NVMe
	if log.Critical.count() && log.Critical.within(0, 255) {
		v.Set(sample.DriveCritical, log.Critical.value)
	}
	if _, known := v.Get(sample.DriveTemperature); !known && isTemperature(log.Temperature) {
		v.Set(sample.DriveTemperature, log.Temperature.value)
	}
	for i, t := range log.Sensors {
		if isTemperature(t) {
			v.Set(sample.DriveSensor1+sample.DriveQuantity(i), t.value)
		}
	}
	setPercent(v, sample.DriveSpare, log.Spare)
	setPercent(v, sample.DriveSpareMin, log.SpareLeast)
	setPercent(v, sample.DriveWear, log.Used)
	setIfAbsent(v, sample.DrivePowerCycles, log.PowerCycles)
	if _, known := v.Get(sample.DrivePowerOn); !known && log.PowerOn.within(0, maxHours) {
		v.Set(sample.DrivePowerOn, hours(log.PowerOn.value))
	}
	setCount(v, sample.DriveMediaErrors, log.MediaErrors)
	setBytes(v, sample.DriveRead, log.UnitsRead, unit)
	setBytes(v, sample.DriveWritten, log.UnitsWritten, unit)
}

// scsi reads the log pages of SCSI and SAS drives.
func (doc *document) scsi(d *sample.Drive) {
	v := &d.Values
	if e := &doc.Status.value.SCSI; e.ASC.within(1, 255) && e.ASCQ.within(0, 255) {
		d.ASC, d.ASCQ = uint8(e.ASC.value), uint8(e.ASCQ.value)
		d.Exception = cmp.Or(string(e.Text), fmt.Sprintf("additional sense code 0x%02x, qualifier 0x%02x", d.ASC, d.ASCQ))
	}
	setCount(v, sample.DriveReallocated, doc.GrownDefects)
	setCount(v, sample.DrivePending, doc.PendingDefects.Count)
	if _, known := v.Get(sample.DriveWear); !known {
		setPercent(v, sample.DriveWear, doc.SCSIUsed)
	}
	if t := doc.Environment.First.Current; isTemperature(t) && t.value != 0 {
		setIfAbsent(v, sample.DriveTemperature, t)
	}
	log := &doc.ErrorCounters
	total, known := 0.0, false
	for _, c := range []*errorCounters{&log.Read, &log.Write, &log.Verify} {
		if c.Uncorrected.count() {
			total, known = total+c.Uncorrected.value, true
		}
	}
	if known {
		v.Set(sample.DriveReportedUncorrectable, total)
	}
	setBytes(v, sample.DriveRead, log.Read.Gigabytes, 1e9)
	setBytes(v, sample.DriveWritten, log.Write.Gigabytes, 1e9)
}

// setBytes sets a number of units in bytes.
func setBytes(v *sample.DriveValues, q sample.DriveQuantity, n number, unit float64) {
	if n.within(0, 1e18) {
		v.Set(q, n.value*unit)
	}
}
