package recording

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/stallspan/stallspan/internal/sample"
)

var (
	errLong  = fmt.Errorf("a reading is longer than %d MiB", mostLine>>20)
	errMany  = fmt.Errorf("a reading has more than %d values", mostCommas)
	errStamp = errors.New("a reading has no time")
)

// checkLine holds both sides to the same bounds, so that what was written can be read. The reader's memory grows with
// the commas of a line more than with its bytes.
func checkLine(text []byte) error {
	switch {
	case len(text) >= mostLine:
		return errLong
	case bytes.Count(text, []byte{','}) > mostCommas:
		return errMany
	}
	return nil
}

// checkStamp refuses what is no moment of a machine's life. Wall times outside of these years cannot be told in
// nanoseconds since 1970, as telemetry tells them.
func checkStamp(at sample.Stamp) error {
	if year := at.Wall.Year(); year < 1970 || year > 2261 || at.Mono < 0 {
		return errStamp
	}
	return nil
}
