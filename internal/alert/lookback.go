package alert

import "time"

// marks is the number of readings that a lookback holds: enough to cover one and a half times its length.
const marks = 18

// lookback holds readings of cumulative counters, one every twelfth of its length, for differences over that length.
type lookback[T any] struct {
	ring    [marks]mark[T]
	n, next int
}

type mark[T any] struct {
	at    time.Duration
	value T
}

// due reports whether length/12 has passed since the newest reading, or there is no reading.
func (l *lookback[T]) due(at, length time.Duration) bool {
	return l.n == 0 || at-l.newest().at >= length/12
}

func (l *lookback[T]) newest() *mark[T] { return &l.ring[(l.next+marks-1)%marks] }

func (l *lookback[T]) add(at time.Duration, value T) {
	l.ring[l.next] = mark[T]{at, value}
	l.next, l.n = (l.next+1)%marks, min(l.n+1, marks)
}

// before returns the newest reading that is at least length old, or nil if there is no reading that is between one and
// one and a half times length old.
func (l *lookback[T]) before(at, length time.Duration) *mark[T] {
	for i := 1; i <= l.n; i++ {
		m := &l.ring[(l.next+marks-i)%marks]
		if age := at - m.at; age >= length {
			if age <= length+length/2 {
				return m
			}
			return nil
		}
	}
	return nil
}

func (l *lookback[T]) reset() { l.n, l.next = 0, 0 }
