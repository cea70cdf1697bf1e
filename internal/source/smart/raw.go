package smart

import (
	"regexp"
	"strconv"
)

// A raw value has 48 bits, and makers put several numbers into them. smartctl's database knows for many drives how to
// read them, and prints what it read as text: "2725 (151 234 0)", "25 (Min/Max 19/39)", "12345h+10m+01.000s", "0 0 4".
var (
	leading = regexp.MustCompile(`^([0-9]{1,15})(?:$| \()`)
	hoursOf = regexp.MustCompile(`^([0-9]{1,15})(?:$| \(|h)`)
	words16 = regexp.MustCompile(`^[0-9]{1,5}(?: [0-9]{1,5}){1,2}$`)
)

// mostCount is more than any of these counters may hold: they count sectors and errors.
const mostCount = 1<<32 - 1

// count is the attribute's number of events.
func (a *attribute) count(id int) number {
	if id == 188 { // Seagate counts three kinds of timeouts in 16 bits each: the lowest are all of them
		return a.low(16)
	}
	if n := matched(leading, string(a.Raw.Text)); n.told {
		return n
	}
	if n := a.Raw.Value; n.count() && n.value <= mostCount {
		return n
	}
	return a.low(16)
}

// hours is what a Power_On_Hours tells. Some drives keep the minutes or milliseconds above it.
func (a *attribute) hours() number {
	if n := matched(hoursOf, string(a.Raw.Text)); n.told {
		return n
	}
	if n := a.Raw.Value; n.count() && n.value <= mostHours {
		return n
	}
	return a.low(32)
}

// low is the value's lowest bits, or the number that smartctl has found in them.
func (a *attribute) low(bits uint) number {
	if n := matched(leading, string(a.Raw.Text)); n.within(0, float64(uint64(1)<<bits-1)) {
		return n
	}
	if n := a.Raw.Value; n.count() && n.value < 1<<48 {
		return number{float64(uint64(n.value) & (1<<bits - 1)), true}
	}
	return number{}
}

// matched is the number that a text begins with. Several words of 16 bits in a row begin with the highest, which is not
// it.
func matched(form *regexp.Regexp, text string) number {
	if words16.MatchString(text) {
		return number{}
	}
	m := form.FindStringSubmatch(text)
	if m == nil {
		return number{}
	}
	n, err := strconv.ParseUint(m[1], 10, 64)
	return number{float64(n), err == nil && n <= mostCount}
}
