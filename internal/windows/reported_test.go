package windows

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
)

func ids(all []Reported) (got []string) {
	for _, m := range all {
		got = append(got, m.Report.ID)
	}
	return got
}

func TestCache(t *testing.T) {
	t.Parallel()
	var s Cache
	add := func(id, client string, end time.Duration) {
		s.Add(Reported{Report: &explain.Report{ID: id}, Client: client, End: end, Size: len(id)}, end)
	}
	add("a", "", time.Second)
	add("b", "uid 1", 2*time.Second)
	add("a", "uid 1", 3*time.Second) // another client's a is another window
	add("b", "uid 1", 4*time.Second)
	if got, want := ids(s.All(4*time.Second)), []string{"a", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := ids(s.All(Keep+3*time.Second+1)), []string{"b"}; !slices.Equal(got, want) {
		t.Errorf("an hour later: got %v, want %v", got, want)
	}
	if got := ids(s.All(2 * Keep)); len(got) > 0 || s.all.Len() > 0 {
		t.Errorf("two hours later: got %v, and %d kept, want none", got, s.all.Len())
	}
}

// One client cannot drive out the windows of another one, by their number or by their size.
func TestFullCache(t *testing.T) {
	t.Parallel()
	for _, size := range []int{100, 64 << 10} {
		var s Cache
		s.Add(Reported{Report: &explain.Report{ID: "victim"}, Client: "uid 1", Size: 100}, 0)
		for i := range 2 * MaxReported {
			s.Add(Reported{Report: &explain.Report{ID: fmt.Sprint(i)}, Client: "uid 2", Size: size}, 0)
		}
		all, sum := s.All(0), 0
		for _, m := range all {
			sum += m.Size
		}
		if len(all) > MaxReported || sum > maxReportedBytes {
			t.Errorf("reports of %d bytes: got %d with %d bytes, want at most %d and %d", size, len(all), sum, MaxReported,
				maxReportedBytes)
		}
		first, last := all[0].Report.ID, all[len(all)-1].Report.ID
		if first != "victim" || last != fmt.Sprint(2*MaxReported-1) {
			t.Errorf("reports of %d bytes: got %s to %s, want the other client's window and the newest one", size, first, last)
		}
	}
}
