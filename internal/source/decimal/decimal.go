// Package decimal reads the numbers that the kernel prints in /proc and /sys, without the copies that strconv needs
// for a string.
package decimal

import "math"

// Parse reads a number of plain digits that fits 64 bits: no sign, no blanks, at least one digit.
func Parse(digits []byte) (n uint64, ok bool) {
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
