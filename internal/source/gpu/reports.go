package gpu

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const (
	reportInterval = time.Minute // between two tellings of the same trouble
	maxNotes       = 64          // troubles that are remembered
)

// notes keeps trouble from being told with every row.
type notes struct {
	told    map[string]time.Duration
	pending sample.Problems
}

// add lets the next row tell err, unless the same was told less than a minute ago. key says what is the same.
func (n *notes) add(key string, err error, now time.Duration) bool {
	if at, ok := n.told[key]; ok && now-at < reportInterval {
		return false
	}
	if n.told == nil || len(n.told) >= maxNotes {
		n.told = map[string]time.Duration{}
	}
	n.told[key] = now
	n.pending.Add(err)
	return true
}

// take gives what is to be told now, once.
func (n *notes) take() error {
	err := n.pending.Err()
	n.pending.Reset()
	return err
}
