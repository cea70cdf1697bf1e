package recording

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/stallspan/stallspan/internal/sample"
)

var (
	errLong  = fmt.Errorf("a reading is longer than %d MiB", maxLine>>20)
	errMany  = fmt.Errorf("a reading has more than %d values", maxCommas)
	errStamp = errors.New("a reading has no time")
)

// checkLine applies the same bounds to both sides, so that the reader accepts what the writer wrote. The reader's
// memory grows more with the commas of a line than with its bytes.
func checkLine(text []byte) error {
	switch {
	case len(text) >= maxLine:
		return errLong
	case bytes.Count(text, []byte{','}) > maxCommas:
		return errMany
	}
	return nil
}

// checkStamp rejects times that no machine has. Telemetry counts nanoseconds since 1970, which limits the years.
func checkStamp(at sample.Stamp) error {
	if year := at.Wall.Year(); year < 1970 || year > 2261 || at.Mono < 0 {
		return errStamp
	}
	return nil
}
