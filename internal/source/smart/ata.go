package smart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
)

// counters are the attributes that hold counts of what went wrong. Numbers alone do not do: makers of SSDs use them for
// other things, so the name that smartctl's database gives must have one of the words in it.
var counters = map[int]struct {
	quantity sample.DriveQuantity
	words    []string
}{
	5:   {sample.DriveReallocated, []string{"realloc", "retired", "reassign", "bad_block"}},
	187: {sample.DriveReportedUncorrectable, []string{"uncorr", "uecc", "reported"}},
	188: {sample.DriveCommandTimeouts, []string{"timeout"}},
	197: {sample.DrivePending, []string{"pending"}},
	198: {sample.DriveOfflineUncorrectable, []string{"uncorr", "offline"}},
	199: {sample.DriveCRCErrors, []string{"crc"}},
	218: {sample.DriveCRCErrors, []string{"crc"}},
}

// lifeLeft are the attributes of SSDs whose normalised value is the per cent of rated writes that are left.
var lifeLeft = []string{
	"ssd_life_left", "percent_lifetime_remain", "percent_life_remaining", "remaining_lifetime_perc", "media_wearout_indicator",
	"wear_leveling_count", "perc_rated_life_remain", "drive_life_remaining%", "remaining_life", "ave_block-erase_count",
	"wear_range_delta_left",
}

// lifePercent are further ones, which tell per cent in the raw value too, of what is left or of what is used up. On some
// drives the normalised value of such an attribute stands still, so it counts only where both agree.
var lifePercent = []string{
	"perc_rated_life_used", "percent_lifetime_used", // normalised: 100 less what is used up
	"lifetime_left", "lifetime_remaining%", "drivelife_remaining%", "pct_life_remaining",
}

// sanDiskWear is SanDisk's and Western Digital's Media_Wearout_Indicator, which tells the wear in its raw value, in
// different ways. Its normalised value is no life that is left (100 of one after 177 cycles), so it is left out.
const sanDiskWear = 230

// lifetimeUnits are the attributes that count what was read or written, and what one is, in bytes.
var lifetimeUnits = []struct {
	words string // how the name begins or ends
	unit  float64
}{
	{"_32mib", 32 << 20}, {"_gib", 1 << 30}, {"_gb", 1e9}, {"_mib", 1 << 20}, {"_lbas", 512},
}

// mostNamed bounds how many attributes are named as being at their threshold.
const mostNamed = 8

func (doc *document) ata(d *sample.Drive) {
	v := &d.Values
	for i := range doc.Statistics.Pages {
		for j := range doc.Statistics.Pages[i].Table {
			doc.statistic(v, &doc.Statistics.Pages[i].Table[j])
		}
	}
	for i := range doc.Attributes.is.Table.is {
		a := &doc.Attributes.is.Table.is[i]
		doc.attribute(d, a)
		switch {
		case a.WhenFailed == "now" && (!a.Flags.PreFailure.told || a.Flags.PreFailure.value):
			a.addTo(&d.AtThreshold)
		case a.WhenFailed == "now" && a.heat():
			a.addTo(&d.HotAt)
		case a.WhenFailed == "now":
			a.addTo(&d.AgedAt)
		case a.WhenFailed == "past":
			a.addTo(&d.WasAt)
		}
	}
}

// addTo names an attribute in one of the lists of those that are or were at their threshold.
func (a *attribute) addTo(names *[]string) {
	if len(*names) < mostNamed {
		*names = append(*names, cmp.Or(string(a.Name), fmt.Sprintf("attribute %.0f", a.ID.value)))
	}
}

// heat says whether an attribute is a temperature, by its name or, without one, by the usual meaning of its number.
func (a *attribute) heat() bool {
	if a.Name == "" {
		return a.ID.value == 190 || a.ID.value == 194
	}
	return has(strings.ToLower(string(a.Name)), []string{"temper", "_temp"})
}

// lifeLeft says whether the normalised value is the per cent of rated writes that are left. Where the threshold is 100
// it falls to that, not to 0.
func (a *attribute) lifeLeft(name string) bool {
	switch v := a.Value; {
	case name == "", int(a.ID.value) == sanDiskWear, a.Threshold.within(100, 255), !v.within(0, 100):
		return false
	case has(name, lifeLeft):
		return true
	default:
		raw := a.Raw.Value
		return has(name, lifePercent) && (!raw.within(0, 100) || raw.value == v.value || raw.value == 100-v.value)
	}
}

// statistic takes over what the drive's standard statistics tell better than its attributes.
func (doc *document) statistic(v *sample.DriveValues, s *statistic) {
	if !s.Flags.Valid.value {
		return
	}
	switch s.Name {
	case "Percentage Used Endurance Indicator":
		if _, told := v.Get(sample.DriveWear); !told {
			setPercent(v, sample.DriveWear, s.Value)
		}
	case "Logical Sectors Written":
		setFirst(v, sample.DriveWritten, doc.sectors(s.Value))
	case "Logical Sectors Read":
		setFirst(v, sample.DriveRead, doc.sectors(s.Value))
	}
}

// sectors are so many of them, in bytes.
func (doc *document) sectors(n number) number {
	size := 512.0
	if doc.BlockSize.within(512, 1<<16) {
		size = doc.BlockSize.value
	}
	return number{n.value * size, n.told}
}

func (doc *document) attribute(d *sample.Drive, a *attribute) {
	if !a.ID.within(1, 255) {
		return
	}
	id, name := int(a.ID.value), strings.ToLower(string(a.Name))
	v := &d.Values
	if c, known := counters[id]; known && has(name, c.words) {
		setFirst(v, c.quantity, a.count(id))
		return
	}
	switch {
	case id == 9 && strings.Contains(name, "power_on"):
		if n := a.hours(); n.within(0, mostHours) {
			setFirst(v, sample.DrivePowerOn, number{hours(n.value), true})
		}
	case id == 12 && strings.Contains(name, "power_cycle"):
		setFirst(v, sample.DrivePowerCycles, a.count(id))
	case (id == 194 || id == 190) && strings.Contains(name, "temp"):
		if n := a.low(8); n.within(1, 120) { // minimum and maximum stand above it
			setFirst(v, sample.DriveTemperature, n)
		}
	case !d.Rotates && a.lifeLeft(name):
		if _, told := v.Get(sample.DriveWear); !told {
			v.Set(sample.DriveWear, (100-a.Value.value)/100)
		}
	case id == 241 || id == 246 || id == 242 || id == 225:
		doc.lifetime(v, a, name)
	}
}

// lifetime takes over the bytes read and written, where the attribute's name says in what they are counted.
func (doc *document) lifetime(v *sample.DriveValues, a *attribute, name string) {
	q := sample.DriveRead
	if strings.Contains(name, "writ") {
		q = sample.DriveWritten
	} else if !strings.Contains(name, "read") {
		return
	}
	n := a.Raw.Value
	if !n.count() || n.value == 0 {
		return
	}
	if strings.HasPrefix(name, "total_lbas") || strings.HasPrefix(name, "total_host_sector") {
		if doc.in32MiB() {
			setFirst(v, q, number{n.value * (32 << 20), true})
			return
		}
		setFirst(v, q, doc.sectors(n))
		return
	}
	for _, u := range lifetimeUnits {
		if strings.HasSuffix(name, u.words) {
			setFirst(v, q, number{n.value * u.unit, true})
			return
		}
	}
}

// in32MiB says whether a drive counts in 32 MiB what smartctl takes for LBAs: where another attribute, whose name tells
// the unit, has the same value.
func (doc *document) in32MiB() bool {
	var lbas, units []float64
	for i := range doc.Attributes.is.Table.is {
		a := &doc.Attributes.is.Table.is[i]
		switch name := strings.ToLower(string(a.Name)); {
		case !a.Raw.Value.within(1, 1<<48):
		case name == "total_lbas_written":
			lbas = append(lbas, a.Raw.Value.value)
		case strings.HasPrefix(name, "host_writes_32mib"):
			units = append(units, a.Raw.Value.value)
		}
	}
	return slices.ContainsFunc(units, func(n float64) bool { return slices.Contains(lbas, n) })
}

// has says whether one of some words is in a name. An attribute without a name is of a drive that smartctl was not asked
// to name; its number has the usual meaning then.
func has(name string, words []string) bool {
	if name == "" {
		return true
	}
	for _, w := range words {
		if strings.Contains(name, w) {
			return true
		}
	}
	return false
}
