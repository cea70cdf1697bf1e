package compare

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/stallspan/stallspan/internal/explain"
)

// maxTime is the longest plausible time, in seconds: over thirty years.
const maxTime = 1e9

// tolerance is the maximum difference of a ledger's sum and its window, in seconds per GPU. Reports are exact to the
// nanosecond, but tools that rewrite them may round.
const tolerance = 1e-3

// Read reads a report. It returns an error if the numbers are impossible or do not add up.
func Read(r io.Reader) (*explain.Document, error) {
	d, err := explain.Read(r)
	if err != nil {
		return nil, err
	}
	if d.Run != nil {
		if err := check(d.Run); err != nil {
			return nil, fmt.Errorf("the whole run: %w", err)
		}
	}
	for i, w := range d.Windows {
		if err := check(w); err != nil {
			return nil, fmt.Errorf("window %d: %w", i+1, err)
		}
	}
	return d, nil
}

func check(w *explain.Report) error {
	switch {
	case !isTime(w.Duration):
		return fmt.Errorf("duration_s is %g, which is not a duration", w.Duration)
	case w.SpeedupBound != nil && *w.SpeedupBound < 1:
		return fmt.Errorf("speedup_bound is %g, but must be at least 1", *w.SpeedupBound)
	case w.GPU != nil && len(w.GPU.IDs) == 0:
		return errors.New("gpu.ids is empty")
	}
	for i := range w.Disks {
		for _, await := range []*float64{w.Disks[i].ReadAwait, w.Disks[i].WriteAwait} {
			if await != nil && !isTime(*await) {
				return fmt.Errorf("disk %d: an await is %g, which is not a duration", i+1, *await)
			}
		}
	}
	return checkLedger(w)
}

func checkLedger(w *explain.Report) error {
	ledger := ledgerOf(w)
	if ledger == nil {
		return nil
	}
	sum := 0.0
	for _, part := range ledger.parts {
		if !isTime(part.seconds) {
			return fmt.Errorf("%g s of %s is not a duration", part.seconds, part.name)
		}
		sum += part.seconds
	}
	if math.Abs(sum-w.Duration) > tolerance+1e-6*w.Duration {
		return fmt.Errorf("the parts of its time add up to %g s, not to its duration of %g s: was it edited?", sum,
			w.Duration)
	}
	return nil
}

// isTime is false for NaN, too.
func isTime(seconds float64) bool { return seconds >= 0 && seconds <= maxTime }
