package gpu

import "time"

const (
	// minLag is how old the newest sample of a prompt driver becomes before the next reading.
	minLag = readInterval + 200*time.Millisecond
	// firstLag is assumed of a driver until its own lag is known well: it may publish its samples once a second.
	firstLag = 2*readInterval + 200*time.Millisecond
	// hold is how long a new GPU's rows wait for its first samples, which are requested every holdInterval.
	hold         = 3500 * time.Millisecond
	holdInterval = 250 * time.Millisecond
	// maxLag bounds how long rows wait for samples: of a driver that publishes those from three seconds ago once a
	// second, read once a second. history.Lag is longer.
	maxLag = 5500 * time.Millisecond
	// lagMargin is added to what was observed.
	lagMargin = 100 * time.Millisecond
	// lagReadings is how many readings are remembered.
	lagReadings = 16
)

// lateness learns how old a driver's samples are when a reading returns them.
type lateness struct {
	ages [lagReadings]time.Duration // of the oldest new sample of the last readings
	next int
}

// observe takes the age of the oldest new sample of a reading.
func (l *lateness) observe(age time.Duration) {
	if *l == (lateness{}) {
		l.ages[0], l.next = firstLag-lagMargin, 1 // until there were as many readings
	}
	l.ages[l.next], l.next = age, (l.next+1)%lagReadings
}

// lag is how old the newest known sample may become while the driver works as it did.
func (l *lateness) lag() time.Duration {
	if *l == (lateness{}) {
		return hold
	}
	oldest := l.ages[0]
	for _, age := range l.ages {
		oldest = max(oldest, age)
	}
	return min(max(oldest+lagMargin, minLag), maxLag)
}
