package trust

import (
	"cmp"
	"slices"
)

// Lane returns the lane of a client in a Queue and in a Rate. Unlike the client "", no lane of a client is this
// program's own: it shares with others.
func Lane(client string) string { return "of " + client }

// Queue is a bounded list, the oldest first. Each client adds to a lane of its own. If the list is full, the lane that
// costs most loses its oldest, so that no client drives out what others have added. The lane "" is this program's own:
// it loses only what costs more than half of the list, and else only if there is nothing of others. The zero value with
// a Size is empty. It is not safe for concurrent use.
type Queue[T any] struct {
	Size int // of all costs

	items []queued[T]
	costs map[string]int // by lane
	total int
	next  uint64
}

type queued[T any] struct {
	lane   string
	cost   int
	number uint64
	value  T
}

// Add adds a value, and returns those that it drives out: perhaps itself.
func (q *Queue[T]) Add(lane string, cost int, value T) (lost []T) {
	if q.costs == nil {
		q.costs = map[string]int{}
	}
	q.items = append(q.items, queued[T]{lane, cost, q.next, value})
	q.next++
	q.costs[lane] += cost
	q.total += cost
	for q.total > q.Size {
		lost = append(lost, q.remove(q.first(q.greedy())))
	}
	return lost
}

// greedy returns the lane that loses something.
func (q *Queue[T]) greedy() (lane string) {
	if q.costs[""] > q.Size/2 {
		return ""
	}
	most := -1
	for _, item := range q.items { // of two that cost the same, the one whose value is older
		if cost := q.costs[item.lane]; item.lane != "" && cost > most {
			lane, most = item.lane, cost
		}
	}
	return lane
}

// first returns the place of the oldest value of a lane.
func (q *Queue[T]) first(lane string) int {
	return slices.IndexFunc(q.items, func(item queued[T]) bool { return item.lane == lane })
}

func (q *Queue[T]) remove(at int) T {
	item := q.items[at]
	q.items = slices.Delete(q.items, at, at+1)
	q.free(&item)
	return item.value
}

func (q *Queue[T]) free(item *queued[T]) {
	q.total -= item.cost
	if q.costs[item.lane] -= item.cost; q.costs[item.lane] == 0 {
		delete(q.costs, item.lane)
	}
}

// Pop removes the value whose turn it is: the oldest of this program's own, or else of the lane that costs least.
func (q *Queue[T]) Pop() (value T, ok bool) {
	if len(q.items) == 0 {
		return value, false
	}
	at := q.first("")
	if at < 0 {
		at = 0
		for i := range q.items {
			if q.costs[q.items[i].lane] < q.costs[q.items[at].lane] {
				at = i
			}
		}
	}
	return q.remove(at), true
}

// Remove removes the values that are gone.
func (q *Queue[T]) Remove(gone func(value *T) bool) {
	q.items = slices.DeleteFunc(q.items, func(item queued[T]) bool {
		if !gone(&item.value) {
			return false
		}
		q.free(&item)
		return true
	})
}

// Forget removes the values before a number.
func (q *Queue[T]) Forget(before uint64) {
	n := 0
	for n < len(q.items) && q.items[n].number < before {
		q.free(&q.items[n])
		n++
	}
	q.items = slices.Delete(q.items, 0, n)
}

// HasOwn reports whether there is a value of this program's own.
func (q *Queue[T]) HasOwn() bool { return q.costs[""] > 0 }

// Len returns how many values there are.
func (q *Queue[T]) Len() int { return len(q.items) }

// Last returns the number of the first of the newest n values. Numbers count what was ever added, from 0.
func (q *Queue[T]) Last(n int) uint64 {
	if n = min(n, len(q.items)); n > 0 {
		return q.items[len(q.items)-n].number
	}
	return q.next
}

// From returns the values from a number on, at most so many, and the number to continue from.
func (q *Queue[T]) From(number uint64, most int) (values []T, next uint64) {
	at, _ := slices.BinarySearchFunc(q.items, number, func(item queued[T], n uint64) int {
		return cmp.Compare(item.number, n)
	})
	for _, item := range q.items[at:min(len(q.items), at+most)] {
		values = append(values, item.value)
		number = item.number + 1
	}
	if at+len(values) == len(q.items) {
		number = q.next
	}
	return values, number
}
