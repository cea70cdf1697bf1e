package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// The groups of an axis are found by their place in the reading before. Devices that come, go and change places must
// keep their own values.
func TestDevicesKeepTheirValuesInAnyOrder(t *testing.T) {
	h, err := New(Config{Tiers: []Tier{{Rows: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	orders := [][]int{{1, 2, 3}, {3, 2, 1}, {2, 3}, {3, 4, 2}, {4, 1, 3, 2}, {1, 2, 3, 4}}
	at := func(i int) time.Duration { return time.Duration(i+1) * time.Second }
	for i, order := range orders {
		s := sample.Sample{At: sample.Stamp{Mono: at(i)}}
		for _, n := range order {
			// Each GPU works at a rate of its own.
			s.GPUs = append(s.GPUs, sample.GPU{ID: fmt.Sprint(n), Busy: time.Duration(n) * at(i)})
		}
		if err := h.Append(&s); err != nil {
			t.Fatal(err)
		}
	}
	last := len(orders) - 1
	for n, first := range map[int]int{1: 0, 2: 0, 3: 0, 4: 3} {
		key := Key{GPUBusyTime, fmt.Sprint(n)}
		got, ok := h.Between(key, Point{At: at(first)}, Point{At: at(last)})
		if want := float64(n) * (at(last) - at(first)).Seconds(); !ok || got.Value != want {
			t.Errorf("GPU %d between readings %d and %d: got %v, %t, want %v", n, first, last, got.Value, ok, want)
		}
	}
	for i := range h.axes {
		if a := &h.axes[i]; len(a.order) != len(a.groups) {
			t.Errorf("axis %d: got %d groups in order, want %d", i, len(a.order), len(a.groups))
		}
	}
}
