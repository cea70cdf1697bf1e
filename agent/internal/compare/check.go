package compare

import (
	"errors"
	"fmt"
	"math"
)

// maxTime is the longest plausible time, in seconds: over thirty years.
const maxTime = 1e9

// tolerance is the maximum difference of a ledger's sum and its window, in seconds per GPU. Reports are exact to the
// nanosecond, but tools that rewrite them may round.
const tolerance = 1e-3

// check returns an error if the numbers are impossible or do not add up.
func (d *Document) check() error {
	if len(d.Windows) == 0 {
		return errors.New("it has no windows")
	}
	if d.Run != nil {
		if err := d.Run.check(); err != nil {
			return fmt.Errorf("the whole run: %w", err)
		}
	}
	for i := range d.Windows {
		if err := d.Windows[i].check(); err != nil {
			return fmt.Errorf("window %d: %w", i+1, err)
		}
	}
	return nil
}

func (w *Window) check() error {
	switch {
	case w.Kind == "":
		return errors.New("kind is missing")
	case w.Duration == nil:
		return errors.New("duration_s is missing")
	case !isTime(*w.Duration):
		return fmt.Errorf("duration_s is %g, which is not a duration", *w.Duration)
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
	return w.checkLedger()
}

func (w *Window) checkLedger() error {
	ledger := w.ledger()
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
	if math.Abs(sum-*w.Duration) > tolerance+1e-6**w.Duration {
		return fmt.Errorf("the parts of its time add up to %g s, not to its duration of %g s: was it edited?", sum,
			*w.Duration)
	}
	return nil
}

// isTime is false for NaN, too.
func isTime(seconds float64) bool { return seconds >= 0 && seconds <= maxTime }
