package history

import (
	"math"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/store"
)

var began = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)

func rows(start time.Time, columns []store.Column, values ...[]float64) *store.Item {
	r := &store.Rows{Columns: columns, Length: 10 * time.Second, Values: values}
	for i := range values[0] {
		r.Starts = append(r.Starts, start.Add(time.Duration(i)*r.Length).Unix())
	}
	return &store.Item{Rows: r}
}

func column(of store.Kind, id, quantity string) store.Column {
	return store.Column{Of: of, ID: id, Quantity: quantity, Step: 1}
}

// collect returns the buckets of blocks.
func collect(t *testing.T, step time.Duration, from, until time.Time, items ...*store.Item) (all []*Bucket) {
	t.Helper()
	m := NewMaker(step, func(b *Bucket) error { all = append(all, b); return nil })
	for _, item := range items {
		if err := m.Add(item, from, until); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFolds(t *testing.T) {
	nan := math.NaN()
	disk := func(quantity string) store.Column { return column(store.Disk, "vda", quantity) }
	all := collect(t, 30*time.Second, time.Time{}, time.Time{}, rows(began,
		[]store.Column{disk(store.ReadBytes), disk(store.ReadBytesMax), disk(store.Reads), disk(store.ReadAwait),
			column(store.GPU, "g", store.BusyMin), column(store.GPU, "g", "of_a_later_version")},
		[]float64{1, 2, 3, 7}, []float64{1, 9, 3, 7}, []float64{0, 90, 10, nan}, []float64{nan, 1, 2, nan},
		[]float64{0.5, 0.25, 0.75, nan}, []float64{1, nan, 2, nan}))
	if len(all) != 2 || !all[0].Start.Equal(began) || all[0].Length != 30*time.Second {
		t.Fatalf("got %d buckets, want 2", len(all))
	}
	for _, want := range []struct {
		device   int
		quantity string
		value    float64
	}{
		{0, store.BusyMin, 0.25}, {0, "of_a_later_version", 1.5},
		{1, store.ReadBytes, 2}, {1, store.ReadBytesMax, 9}, {1, store.ReadAwait, 1.1},
	} {
		if got, ok := all[0].Devices[want.device].Get(want.quantity); !ok || math.Abs(got-want.value) > 1e-9 {
			t.Errorf("%s: got %v (%v), want %v", want.quantity, got, ok, want.value)
		}
	}
	if _, ok := all[1].Devices[0].Get(store.ReadAwait); ok || len(all[1].Devices) != 1 {
		t.Errorf("got an await without an operation, among %d devices, want none", len(all[1].Devices))
	}
}

func TestOrderAndTimes(t *testing.T) {
	job := []store.Column{column(store.Job, "j", store.Busy)}
	machine := []store.Column{column(store.Machine, "", store.Cores)}
	entry := func(at time.Time) *store.Item { return &store.Item{Entries: []store.Entry{{At: at}}} }
	all := collect(t, 10*time.Second, began, began.Add(3*time.Hour),
		rows(began.Add(-10*time.Second), job, []float64{1, 2, 3}),
		rows(began.Add(-10*time.Second), machine, []float64{1, 2, 3}),
		entry(began.Add(5*time.Second)), entry(began.Add(2*time.Second)), entry(began.Add(-time.Second)),
		rows(began.Add(3*time.Hour-10*time.Second), job, []float64{8, 9}),
		rows(began.Add(20*time.Second), job, []float64{4})) // late, but it is there
	var starts []time.Duration
	for _, b := range all {
		starts = append(starts, b.Start.Sub(began))
	}
	if len(starts) != 4 || starts[0] != 0 || starts[1] != 10*time.Second {
		t.Errorf("got intervals at %v, want from 0 to three hours", starts)
	}
	if d := all[0].Devices; len(d) != 2 || d[0].Label() != "machine" || d[1].Label() != "j" {
		t.Errorf("got %d devices, want the machine and the job", len(d))
	}
	if e := all[0].Entries; len(e) != 2 || e[0].At.After(e[1].At) {
		t.Errorf("got the entries %v, want two in order", e)
	}
}
