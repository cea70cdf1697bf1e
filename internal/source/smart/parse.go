package smart

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Parse reads what smartctl --json has printed of one drive. A drive that was read has no Status yet: that is judged with
// its history. One that sleeps is DriveAsleep, and one that could not be read is DriveUnread, with the reason and what to
// do about it in Err. The error is of a text that is no such JSON. What a drive does not tell is absent. At is not set.
func Parse(text []byte) (sample.Drive, error) { return parse(text, "") }

// parse reads an answer to a question about a device; "" for what the answer says it is about.
func parse(text []byte, device string) (sample.Drive, error) {
	var doc document
	if err := decode(text, &doc); err != nil {
		return sample.Drive{}, err
	}
	if !doc.smartctls() {
		return sample.Drive{}, errors.New("it is JSON, but not what smartctl --json prints of a drive")
	}
	if err := doc.distorted(); err != nil {
		return sample.Drive{}, err
	}
	if device != "" {
		doc.Device.Name = word("/dev/" + device)
	}
	return doc.drive(), nil
}

// smartctls says whether a document was printed by smartctl.
func (doc *document) smartctls() bool {
	return len(doc.Format) > 0 || len(doc.Smartctl.Version) > 0 || doc.Smartctl.Exit.told || doc.Device.Name != ""
}

// distorted says what must not be left out as if the drive had not told it.
func (doc *document) distorted() error {
	what := ""
	switch s, a := &doc.Status, &doc.Attributes; {
	case s.wrong:
		what = "smart_status is not an object"
	case s.is.Passed.wrong:
		what = "smart_status.passed is neither true nor false"
	case a.wrong:
		what = "ata_smart_attributes is not an object"
	case a.is.Table.wrong:
		what = "ata_smart_attributes.table is not an array"
	default:
		return nil
	}
	return fmt.Errorf("%s, so the drive cannot be judged by it: give it as smartctl --json has printed it", what)
}

func (doc *document) drive() sample.Drive {
	d := sample.Drive{
		Device:   deviceName(doc.device()),
		Model:    first(doc.Model, doc.SCSIModel),
		Serial:   string(doc.Serial),
		Firmware: first(doc.Firmware, doc.SCSIRevision, doc.Revision),
		Protocol: doc.protocol(),
		Rotates:  doc.Rotation.within(1, 1e6),
		Exit:     doc.exit(),
	}
	if d.Model == "" {
		d.Model = clean(first(doc.SCSIVendor, doc.Vendor)+" "+first(doc.SCSIProduct, doc.Product), mostWord)
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
	if passed := doc.Status.is.Passed; passed.told {
		d.Assessment = sample.DriveFails
		if passed.value {
			d.Assessment = sample.DrivePassed
		}
	}
	d.SelfTest = doc.failedTest(d.Protocol)
	if why := doc.unread(&d); why != "" {
		d.Status, d.Err = sample.DriveUnread, why
		d.Values, d.WasAt, d.SelfTest = sample.DriveValues{}, nil, "" // all else that it would tell is not there
	}
	return d
}

// device is the path of what was asked. Where smartctl did not get as far as to say it, its command line does.
func (doc *document) device() string {
	if n := len(doc.Smartctl.Arguments); doc.Device.Name == "" && n > 0 && devicePath.MatchString(string(doc.Smartctl.Arguments[n-1])) {
		return string(doc.Smartctl.Arguments[n-1])
	}
	return string(doc.Device.Name)
}

// protocol is as smartctl says, or by what it has printed.
func (doc *document) protocol() string {
	switch p := string(doc.Device.Protocol); {
	case p == "ATA", p == "NVMe", p == "SCSI":
		return p
	case len(doc.Attributes.is.Table.is) > 0:
		return "ATA"
	case doc.NVMe != nvmeLog{}:
		return "NVMe"
	case doc.GrownDefects.told, doc.ErrorCounters.Read.Uncorrected.told:
		return "SCSI"
	}
	return ""
}

// id is the drive's WWN or EUI as the kernel writes it (/sys/class/block/*/device/wwid), else model and serial.
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
	if len(doc.Namespaces) == 1 { // with several, none is the drive's own
		e := &doc.Namespaces[0].EUI64
		if e.OUI.within(0, 1<<24-1) && e.ID.within(0, 1<<40-1) && e.OUI.value+e.ID.value > 0 {
			return fmt.Sprintf("eui.%06x%010x", uint64(e.OUI.value), uint64(e.ID.value))
		}
	}
	return Named(d.Model, d.Serial)
}

var isHex = regexp.MustCompile(`^(?:[0-9a-f]{16}|[0-9a-f]{32})$`)

// common reads what smartctl has worked out of any drive.
func (doc *document) common(d *sample.Drive) {
	v := &d.Values
	if t := doc.Temperature; plausible(t.Current) && !(d.Protocol == "SCSI" && t.Current.value == 0) {
		v.Set(sample.DriveTemperature, t.Current.value)
	}
	for _, limit := range []number{doc.Temperature.OpMax, doc.Temperature.Trip, doc.Temperature.Critical, doc.Temperature.LimitMax} {
		if _, told := v.Get(sample.DriveTemperatureLimit); !told && limit.within(30, 120) {
			v.Set(sample.DriveTemperatureLimit, limit.value)
		}
	}
	if h := doc.PowerOn.Hours; h.within(0, mostHours) {
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

// mostHours is three hundred years: more is a raw value that holds something else beside the hours.
const mostHours = 300 * 365 * 24

// plausible says whether a number may be the temperature of a drive, in degrees Celsius. NVMe drives without a sensor
// tell 0 kelvin.
func plausible(n number) bool { return n.within(-60, 150) }

func setCount(v *sample.DriveValues, q sample.DriveQuantity, n number) {
	if n.count() {
		v.Set(q, n.value)
	}
}

// setPercent takes per cent over as a ratio. A drive tells at most 255.
func setPercent(v *sample.DriveValues, q sample.DriveQuantity, n number) {
	if n.within(0, 255) {
		v.Set(q, n.value/100)
	}
}

// setFirst takes a count over unless there is one.
func setFirst(v *sample.DriveValues, q sample.DriveQuantity, n number) {
	if _, told := v.Get(q); !told {
		setCount(v, q, n)
	}
}

// deviceName is what stands below /dev.
func deviceName(path string) string {
	return strings.TrimPrefix(path, "/dev/")
}

func first(words ...word) string {
	for _, w := range words {
		if w != "" {
			return string(w)
		}
	}
	return ""
}

// hours is so many of them, in seconds.
func hours(n float64) float64 { return n * time.Hour.Seconds() }
