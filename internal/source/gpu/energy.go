package gpu

// energy is the energy that a GPU used, in joules. The driver takes milliseconds for its counter, so that it is read
// rarely where power is known: the growth since the newest reading is then power times time. The next reading replaces
// it, so that errors do not add up. If power was too high, the sum stands still until the counter has caught up.
type energy struct {
	known   bool
	counted float64 // the counter's newest reading
	since   float64 // by power, since that reading
	shown   float64 // the highest sum, which rows may contain
}

// count takes a reading of the counter, which began again if it fell below the one before: the driver was loaded again.
func (e *energy) count(joules float64) float64 {
	if !e.known || joules < e.counted {
		e.shown = 0
	}
	e.known, e.counted, e.since = true, joules, 0
	return e.sum()
}

// add takes the energy since the newest call of count or add, by power.
func (e *energy) add(joules float64) float64 {
	e.since += joules
	return e.sum()
}

// sum returns the energy so far. It never decreases while the counter does not.
func (e *energy) sum() float64 {
	e.shown = max(e.shown, e.counted+e.since)
	return e.shown
}
