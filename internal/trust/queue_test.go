package trust

import (
	"fmt"
	"slices"
	"testing"
)

// popped are all values, in their turn.
func popped(q *Queue[string]) (all []string) {
	for value, ok := q.Pop(); ok; value, ok = q.Pop() {
		all = append(all, value)
	}
	return all
}

// Who adds too much loses his own, whatever others add, and the values of this program come first.
func TestQueue(t *testing.T) {
	q := Queue[string]{Size: 8}
	q.Add("b", 1, "b")
	for i := range 20 {
		lost := q.Add("a", 1, fmt.Sprint("a", i))
		if want := max(0, i-6); i >= 7 && !slices.Equal(lost, []string{fmt.Sprint("a", want-1)}) {
			t.Errorf("a's %d: got %q lost, want its oldest", i, lost)
		}
	}
	q.Add("", 1, "own")
	q.Add("c", 1, "c1")
	q.Add("c", 1, "c2")
	if got, want := popped(&q), []string{"own", "b", "c1", "c2", "a16", "a17", "a18", "a19"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(q.costs) != 0 || q.total != 0 {
		t.Errorf("empty: got the costs %v and %d, want none", q.costs, q.total)
	}
}

// One large value of a client is driven out by no number of small ones of another.
func TestCostsInQueue(t *testing.T) {
	q := Queue[string]{Size: 100}
	q.Add("a", 40, "large")
	for range 1000 {
		q.Add("b", 1, "small")
	}
	if got := q.Len(); got != 61 || q.total != 100 {
		t.Errorf("got %d values that cost %d, want 61 of 100", got, q.total)
	}
	if lost := q.Add("c", 101, "huge"); !slices.Equal(lost, []string{"huge"}) {
		t.Errorf("too large: got %q lost, want it alone", lost)
	}
}

// This program's own values keep half of the list from others, and leave them the other half.
func TestOwnValues(t *testing.T) {
	for _, own := range []int{10, 200} {
		q := Queue[string]{Size: 100}
		for range own {
			q.Add("", 1, "own")
		}
		for i := range 1000 {
			q.Add(fmt.Sprint(i%90), 1, "other")
		}
		if got, want := q.costs[""], min(own, 50); got != want || q.total != 100 {
			t.Errorf("%d of its own: got %d left, and %d in all; want %d and 100", own, got, q.total, want)
		}
	}
}

// A reader gets each value once, or knows by its number that it is gone.
func TestFrom(t *testing.T) {
	q := Queue[string]{Size: 3}
	if values, next := q.From(0, 9); values != nil || next != 0 {
		t.Errorf("empty: got %q and %d, want nothing", values, next)
	}
	for i, lane := range []string{"a", "b", "b", "b", "c"} {
		q.Add(lane, 1, fmt.Sprint(i))
	}
	for _, c := range []struct {
		from   uint64
		most   int
		values []string
		next   uint64
	}{
		{0, 9, []string{"0", "3", "4"}, 5}, {0, 1, []string{"0"}, 1}, {1, 1, []string{"3"}, 4}, {4, 9, []string{"4"}, 5},
		{5, 9, nil, 5},
	} {
		if values, next := q.From(c.from, c.most); !slices.Equal(values, c.values) || next != c.next {
			t.Errorf("from %d: got %q and %d, want %q and %d", c.from, values, next, c.values, c.next)
		}
	}
	q.Remove(func(value *string) bool { return *value != "3" })
	values, next := q.From(0, 9)
	if !slices.Equal(values, []string{"3"}) || next != 5 || q.Last(1) != 3 || q.Last(9) != 3 || q.Last(0) != 5 {
		t.Errorf("after removal: got %q, %d and the last ones from %d on; want number 3 alone", values, next, q.Last(1))
	}
}
