package output

import (
	"math"
	"strconv"
)

// TimeFormat is the format of times: RFC 3339 in UTC with milliseconds, so that lines can be sorted by it.
const TimeFormat = "2006-01-02T15:04:05.000Z07:00"

// significantDigits of numbers in JSON and CSV. Larger numbers are whole.
const significantDigits = 6

// Round is the nearest number with so many digits.
func Round(v float64) float64 {
	if math.Abs(v) >= math.Pow10(significantDigits) {
		return math.Round(v)
	}
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', significantDigits, 64), 64) // the text is a number
	return short
}
