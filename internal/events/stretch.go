package events

import "time"

// kept is how many marks a stretch keeps: so many that they cover it half as long again.
const kept = 18

// stretch keeps readings of counters of the last while, a twelfth of it apart, to tell what was counted over it. It takes
// T's size eighteen times, and no more.
type stretch[T any] struct {
	marks   [kept]mark[T]
	n, next int
}

type mark[T any] struct {
	at    time.Duration
	value T
}

// due says whether length/12 has passed since the last mark, or there is none.
func (s *stretch[T]) due(at, length time.Duration) bool {
	return s.n == 0 || at-s.newest().at >= length/12
}

func (s *stretch[T]) newest() *mark[T] { return &s.marks[(s.next+kept-1)%kept] }

func (s *stretch[T]) add(at time.Duration, value T) {
	s.marks[s.next] = mark[T]{at, value}
	s.next, s.n = (s.next+1)%kept, min(s.n+1, kept)
}

// before is the newest mark that is at least length old; nil where none is, or only one that is half as old again.
func (s *stretch[T]) before(at, length time.Duration) *mark[T] {
	for i := 1; i <= s.n; i++ {
		m := &s.marks[(s.next+kept-i)%kept]
		if age := at - m.at; age >= length {
			if age <= length+length/2 {
				return m
			}
			return nil
		}
	}
	return nil
}

func (s *stretch[T]) forget() { s.n, s.next = 0, 0 }
