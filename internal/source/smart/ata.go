package smart

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
)

// counters are the attributes with error counts. Makers of SSDs use some of these numbers for other things, so the name
// in smartctl's drive database must contain one of the words.
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

// lifeLeft are the attributes of SSDs whose normalized value is the percentage of rated writes that is left.
var lifeLeft = []string{
	"ssd_life_left", "percent_lifetime_remain", "percent_life_remaining", "remaining_lifetime_perc",
	"media_wearout_indicator", "wear_leveling_count", "perc_rated_life_remain", "drive_life_remaining%", "remaining_life",
	"ave_block-erase_count",
	"wear_range_delta_left",
}

// lifePercent are attributes with a percentage in the raw value, too, of what is left or used. On some drives the
// normalized value never changes, so the attribute only counts if both agree.
var lifePercent = []string{
	"perc_rated_life_used", "percent_lifetime_used", // normalized: 100 minus what is used
	"lifetime_left", "lifetime_remaining%", "drivelife_remaining%", "pct_life_remaining",
}

// sanDiskWear is Media_Wearout_Indicator of SanDisk and Western Digital. It has the wear in its raw value, in several
// formats, and a normalized value that is not the life left (100 after 177 cycles), so it is left out.
const sanDiskWear = 230

// lifetimeUnits are the units of attributes that count reads and writes, in bytes.
var lifetimeUnits = []struct {
	words string // suffix of the name
	unit  float64
}{
	{"_32mib", 32 << 20}, {"_gib", 1 << 30}, {"_gb", 1e9}, {"_mib", 1 << 20}, {"_lbas", 512},
}

// maxNamed bounds the attributes that are listed as being at their threshold.
const maxNamed = 8

func (doc *document) ata(d *sample.Drive) {
	v := &d.Values
	for i := range doc.Statistics.Pages {
		for j := range doc.Statistics.Pages[i].Table {
			doc.statistic(v, &doc.Statistics.Pages[i].Table[j])
		}
	}
	for i := range doc.Attributes.Table {
		a := &doc.Attributes.Table[i]
		doc.attribute(d, a)
		switch {
		case a.WhenFailed == "now" && !isFalse(a.Flags.PreFailure):
			a.addTo(&d.AtThreshold)
		case a.WhenFailed == "now" && a.isTemperature():
			a.addTo(&d.HotAt)
		case a.WhenFailed == "now":
			a.addTo(&d.AgedAt)
		case a.WhenFailed == "past":
			a.addTo(&d.WasAt)
		}
	}
}

// addTo adds an attribute's name to a list.
func (a *attribute) addTo(names *[]string) {
	if len(*names) < maxNamed {
		*names = append(*names, cmp.Or(string(a.Name), fmt.Sprintf("attribute %.0f", a.ID.value)))
	}
}

// isTemperature reports whether an attribute is a temperature, by its name or, without one, by its number.
func (a *attribute) isTemperature() bool {
	if a.Name == "" {
		return a.ID.value == 190 || a.ID.value == 194
	}
	return containsAny(strings.ToLower(string(a.Name)), []string{"temper", "_temp"})
}

// lifeLeft reports whether the normalized value is the percentage of rated writes that is left. With a threshold of 100
// it decreases to that, not to 0.
func (a *attribute) lifeLeft(name string) bool {
	switch v := a.Value; {
	case name == "", int(a.ID.value) == sanDiskWear, a.Threshold.within(100, 255), !v.within(0, 100):
		return false
	case containsAny(name, lifeLeft):
		return true
	default:
		raw := a.Raw.Value
		return containsAny(name, lifePercent) && (!raw.within(0, 100) || raw.value == v.value || raw.value == 100-v.value)
	}
}

// statistic sets values from the standard statistics, which are more reliable than attributes.
func (doc *document) statistic(v *sample.DriveValues, s *statistic) {
	if !s.Flags.Valid {
		return
	}
	switch s.Name {
	case "Percentage Used Endurance Indicator":
		if _, known := v.Get(sample.DriveWear); !known {
			setPercent(v, sample.DriveWear, s.Value)
		}
	case "Logical Sectors Written":
		setIfAbsent(v, sample.DriveWritten, doc.sectors(s.Value))
	case "Logical Sectors Read":
		setIfAbsent(v, sample.DriveRead, doc.sectors(s.Value))
	}
}

// sectors converts sectors to bytes.
func (doc *document) sectors(n number) number {
	size := 512.0
	if doc.BlockSize.within(512, 1<<16) {
		size = doc.BlockSize.value
	}
	return number{n.value * size, n.known}
}

func (doc *document) attribute(d *sample.Drive, a *attribute) {
	if !a.ID.within(1, 255) {
		return
	}
	id, name := int(a.ID.value), strings.ToLower(string(a.Name))
	v := &d.Values
	if c, known := counters[id]; known && containsAny(name, c.words) {
		setIfAbsent(v, c.quantity, a.count(id))
		return
	}
	switch {
	case id == 9 && strings.Contains(name, "power_on"):
		if n := a.hours(); n.within(0, maxHours) {
			setIfAbsent(v, sample.DrivePowerOn, number{hours(n.value), true})
		}
	case id == 12 && strings.Contains(name, "power_cycle"):
		setIfAbsent(v, sample.DrivePowerCycles, a.count(id))
	case (id == 194 || id == 190) && strings.Contains(name, "temp"):
		if n := a.lowBits(8); n.within(1, 120) { // minimum and maximum are in the bits above
			setIfAbsent(v, sample.DriveTemperature, n)
		}
	case !d.Rotates && a.lifeLeft(name):
		if _, known := v.Get(sample.DriveWear); !known {
			v.Set(sample.DriveWear, (100-a.Value.value)/100)
		}
	case id == 241 || id == 246 || id == 242 || id == 225:
		doc.lifetime(v, a, name)
	}
}

// lifetime sets the bytes read and written if the attribute's name has the unit.
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
			setIfAbsent(v, q, number{n.value * (32 << 20), true})
			return
		}
		setIfAbsent(v, q, doc.sectors(n))
		return
	}
	for _, u := range lifetimeUnits {
		if strings.HasSuffix(name, u.words) {
			setIfAbsent(v, q, number{n.value * u.unit, true})
			return
		}
	}
}

// in32MiB reports whether a drive counts in units of 32 MiB what smartctl names LBAs: another attribute, whose name has
// the unit, has the same value.
func (doc *document) in32MiB() bool {
	var lbas, units []float64
	for i := range doc.Attributes.Table {
		a := &doc.Attributes.Table[i]
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

// containsAny reports whether a name contains one of some words. An attribute without a name, which smartctl was not
// asked to print, has the usual meaning of its number.
func containsAny(name string, words []string) bool {
	return name == "" || hasAny(name, words)
}

func hasAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// A raw value has 48 bits, in which makers pack several numbers. smartctl's drive database decodes them for many
// drives, and prints text: "2725 (151 234 0)", "25 (Min/Max 19/39)", "12345h+10m+01.000s", "0 0 4".
var (
	leadingNumber = regexp.MustCompile(`^([0-9]{1,15})(?:$| \()`)
	hoursOf       = regexp.MustCompile(`^([0-9]{1,15})(?:$| \(|h)`)
	words16       = regexp.MustCompile(`^[0-9]{1,5}(?: [0-9]{1,5}){1,2}$`)
)

// maxCount is above any count of sectors or errors.
const maxCount = 1<<32 - 1

// count returns the attribute's number of events.
func (a *attribute) count(id int) number {
	if id == 188 { // Seagate packs three counts of timeouts in 16 bits each: the lowest is the total
		return a.lowBits(16)
	}
	if n := parseRaw(leadingNumber, string(a.Raw.Text)); n.known {
		return n
	}
	if n := a.Raw.Value; n.count() && n.value <= maxCount {
		return n
	}
	return a.lowBits(16)
}

// hours returns Power_On_Hours. Some drives keep minutes or milliseconds in the bits above.
func (a *attribute) hours() number {
	if n := parseRaw(hoursOf, string(a.Raw.Text)); n.known {
		return n
	}
	if n := a.Raw.Value; n.count() && n.value <= maxHours {
		return n
	}
	return a.lowBits(32)
}

// lowBits returns the value's lowest bits, or the number that smartctl decoded from them.
func (a *attribute) lowBits(bits uint) number {
	if n := parseRaw(leadingNumber, string(a.Raw.Text)); n.within(0, float64(uint64(1)<<bits-1)) {
		return n
	}
	if n := a.Raw.Value; n.count() && n.value < 1<<48 {
		return number{float64(uint64(n.value) & (1<<bits - 1)), true}
	}
	return number{}
}

// parseRaw returns the number at the start of a text. In a row of 16-bit words that is the highest, which is not a
// count.
func parseRaw(form *regexp.Regexp, text string) number {
	if words16.MatchString(text) {
		return number{}
	}
	m := form.FindStringSubmatch(text)
	if m == nil {
		return number{}
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	return number{float64(n), err == nil && n <= maxCount}
}
