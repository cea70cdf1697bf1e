package smart

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Parse reads the output of smartctl --json for one drive. A drive that was read has no Status yet, because that
// depends on its history. A sleeping drive is DriveAsleep. One that could not be read is DriveUnread, with the reason
// and what to do in Err. The error is about text that is not such JSON. Values that the drive does not report are
// absent. At is not set.
func Parse(text []byte) (sample.Drive, error) { return parse(text, "") }

// parse reads the output for a device, or for the device that the output names if device is "".
func parse(text []byte, device string) (sample.Drive, error) {
	var doc document
	if err := decode(text, &doc); err != nil {
		return sample.Drive{}, err
	}
	if len(doc.Format)+len(doc.Smartctl.Version) == 0 && !doc.Smartctl.Exit.known && doc.Device.Name == "" {
		return sample.Drive{}, errors.New("it is JSON, but not what smartctl --json prints of a drive")
	}
	if err := checkNeeded(text); err != nil {
		return sample.Drive{}, err
	}
	messages, table := &doc.Smartctl.Messages, &doc.Attributes.Table
	*messages, *table = (*messages)[:min(len(*messages), maxItems)], (*table)[:min(len(*table), maxItems)]
	if device != "" {
		doc.Device.Name = word("/dev/" + device)
	}
	return doc.drive(), nil
}

func (doc *document) drive() sample.Drive {
	d := sample.Drive{
		Device:   deviceName(doc.device()),
		Model:    string(cmp.Or(doc.Model, doc.SCSIModel)),
		Serial:   string(doc.Serial),
		Firmware: string(cmp.Or(doc.Firmware, doc.SCSIRevision, doc.Revision)),
		Protocol: doc.protocol(),
		Rotates:  doc.Rotation.within(1, 1e6),
		Exit:     doc.exit(),
	}
	if d.Model == "" {
		d.Model = clean(string(cmp.Or(doc.SCSIVendor, doc.Vendor)+" "+cmp.Or(doc.SCSIProduct, doc.Product)), maxWord)
	}
	switch {
	case doc.Capacity.Bytes.count():
		d.Size = uint64(doc.Capacity.Bytes.value)
	case doc.NVMeCapacity.count():
		d.Size = uint64(doc.NVMeCapacity.value)
	}
	d.ID = doc.id(&d)
	if doc.asleep() {
		d.Status = sample.DriveAsleep
		return d
	}
	doc.common(&d)
	switch d.Protocol {
	case "ATA":
		doc.ata(&d)
	case "NVMe":
		doc.nvme(&d.Values)
	case "SCSI":
		doc.scsi(&d)
	}
	if passed := doc.Status.Passed; isFalse(passed) {
		d.Assessment = sample.DriveFails
	} else if passed != nil {
		d.Assessment = sample.DrivePassed
	}
	d.SelfTest = doc.failedTest(d.Protocol)
	if why := doc.unread(&d); why != "" {
		d.Status, d.Err = sample.DriveUnread, why
		d.Values, d.WasAt, d.SelfTest = sample.DriveValues{}, nil, "" // other values would not be from the drive
	}
	return d
}

// device returns the path of the device, from the command line if smartctl did not print it elsewhere.
func (doc *document) device() string {
	arguments := doc.Smartctl.Arguments
	n := len(arguments)
	if doc.Device.Name == "" && n > 0 && devicePath.MatchString(string(arguments[n-1])) {
		return string(arguments[n-1])
	}
	return string(doc.Device.Name)
}

// protocol returns the protocol that smartctl reports, or that its output implies.
func (doc *document) protocol() string {
	switch p := string(doc.Device.Protocol); {
	case p == "ATA", p == "NVMe", p == "SCSI":
		return p
	case len(doc.Attributes.Table) > 0:
		return "ATA"
	case doc.NVMe != nvmeLog{}:
		return "NVMe"
	case doc.GrownDefects.known, doc.ErrorCounters.Read.Uncorrected.known:
		return "SCSI"
	}
	return ""
}

// id returns the drive's WWN or EUI in the kernel's notation (/sys/class/block/*/device/wwid), or model and serial
// number.
func (doc *document) id(d *sample.Drive) string {
	w := &doc.WWN
	if w.NAA.within(1, 15) && w.OUI.within(0, 1<<24-1) && w.ID.within(0, 1<<36-1) && w.OUI.value+w.ID.value > 0 {
		return fmt.Sprintf("naa.%x%06x%09x", uint64(w.NAA.value), uint64(w.OUI.value), uint64(w.ID.value))
	}
	if hex, ok := strings.CutPrefix(strings.ToLower(string(doc.LogicalUnit)), "0x"); ok && isHex.MatchString(hex) {
		if id := "naa." + hex; Unique(id) {
			return id
		}
	}
	if len(doc.Namespaces) == 1 { // several have IDs of their own
		e := &doc.Namespaces[0].EUI64
		if e.OUI.within(0, 1<<24-1) && e.ID.within(0, 1<<40-1) && e.OUI.value+e.ID.value > 0 {
			return fmt.Sprintf("eui.%06x%010x", uint64(e.OUI.value), uint64(e.ID.value))
		}
	}
	return Named(d.Model, d.Serial)
}

var isHex = regexp.MustCompile(`^(?:[0-9a-f]{16}|[0-9a-f]{32})$`)

// common reads the values that smartctl prints in the same way for all drives.
func (doc *document) common(d *sample.Drive) {
	v := &d.Values
	if t := doc.Temperature; isTemperature(t.Current) && !(d.Protocol == "SCSI" && t.Current.value == 0) {
		v.Set(sample.DriveTemperature, t.Current.value)
	}
	t := &doc.Temperature
	for _, limit := range []number{t.OpMax, t.Trip, t.Critical, t.LimitMax} {
		if _, known := v.Get(sample.DriveTemperatureLimit); !known && limit.within(30, 120) {
			v.Set(sample.DriveTemperatureLimit, limit.value)
		}
	}
	if h := doc.PowerOn.Hours; h.within(0, maxHours) {
		minutes := 0.0
		if m := doc.PowerOn.Minutes; m.within(0, 59) {
			minutes = m.value
		}
		v.Set(sample.DrivePowerOn, h.value*3600+minutes*60)
	}
	setCount(v, sample.DrivePowerCycles, doc.PowerCycles)
	setPercent(v, sample.DriveWear, doc.Endurance.Used)
	setPercent(v, sample.DriveSpare, doc.Spare.Left)
	setPercent(v, sample.DriveSpareMin, doc.Spare.Least)
}

// maxHours is 300 years: a larger raw value contains other data.
const maxHours = 300 * 365 * 24

// isTemperature reports whether a number can be a drive's temperature in degrees Celsius. NVMe drives without a sensor
// report 0 kelvin.
func isTemperature(n number) bool { return n.within(-60, 150) }

func setCount(v *sample.DriveValues, q sample.DriveQuantity, n number) {
	if n.count() {
		v.Set(q, n.value)
	}
}

// setPercent sets a ratio from percent. Drives report 255 at most.
func setPercent(v *sample.DriveValues, q sample.DriveQuantity, n number) {
	if n.within(0, 255) {
		v.Set(q, n.value/100)
	}
}

// setIfAbsent sets a count unless it is known.
func setIfAbsent(v *sample.DriveValues, q sample.DriveQuantity, n number) {
	if _, known := v.Get(q); !known {
		setCount(v, q, n)
	}
}

// deviceName returns the part of a path below /dev.
func deviceName(path string) string {
	return strings.TrimPrefix(path, "/dev/")
}

// hours converts hours to seconds.
func hours(n float64) float64 { return n * time.Hour.Seconds() }

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
	if e := &doc.Status.SCSI; e.ASC.within(1, 255) && e.ASCQ.within(0, 255) {
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
