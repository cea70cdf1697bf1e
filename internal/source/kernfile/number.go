package kernfile

import "math"

// ParseUint parses decimal digits, without the copy that strconv needs for a string. It accepts no sign and no blanks.
func ParseUint(digits []byte) (n uint64, ok bool) {
	if len(digits) == 0 {
		return 0, false
	}
	for _, digit := range digits {
		d := uint64(digit - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}
