package pressure

import (
	"bytes"
	"math"
	"time"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

var (
	somePrefix = []byte("some ")
	fullPrefix = []byte("full ")
	totalField = []byte(" total=")
)

// parse reads the lines "some avg10=0.00 avg60=0.00 avg300=0.00 total=123" and "full ...", totals in microseconds. The
// CPU has no line "full" before Linux 5.13; then full is 0. The averages are not needed, because the totals give any
// average. Other lines are ignored.
func parse(text []byte) (some, full time.Duration, ok bool) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte{'\n'})
		switch {
		case bytes.HasPrefix(line, somePrefix):
			if some, ok = total(line); !ok {
				return 0, 0, false
			}
		case bytes.HasPrefix(line, fullPrefix):
			var fullOK bool
			if full, fullOK = total(line); !fullOK {
				return 0, 0, false
			}
		}
	}
	return some, full, ok
}

// total returns the number after "total=". It rejects numbers that exceed a Duration (292 years).
func total(line []byte) (time.Duration, bool) {
	at := bytes.Index(line, totalField)
	if at < 0 {
		return 0, false
	}
	digits, _, _ := bytes.Cut(line[at+len(totalField):], []byte{' '})
	micros, ok := kernfile.ParseUint(digits)
	if !ok || micros > math.MaxInt64/uint64(time.Microsecond) {
		return 0, false
	}
	return time.Duration(micros) * time.Microsecond, true
}
