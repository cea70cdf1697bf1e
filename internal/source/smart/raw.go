package smart

import (
	"regexp"
	"strconv"
)

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
