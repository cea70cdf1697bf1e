package history

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/store"
)

// Bucket is one interval with what is known of it.
type Bucket struct {
	Start   time.Time
	Length  time.Duration
	Devices []*Device     // in the order of kinds, then by ID
	Entries []store.Entry // in the order of time

	known map[deviceKey]*Device
}

type deviceKey struct {
	of store.Kind
	id string
}

// Device is the machine, a GPU, a disk or a job in one interval.
type Device struct {
	Of     store.Kind
	ID     string
	Name   string // for people; "" for the ID
	values map[string]*fold
}

// Label is the device's name for people.
func (d *Device) Label() string { return cmp.Or(d.Name, d.ID, string(d.Of)) }

// Get returns a value, and whether it is known.
func (d *Device) Get(quantity string) (float64, bool) {
	f := d.values[quantity]
	if f == nil {
		return 0, false
	}
	return f.value(), true
}

// fold is a value of an interval that is made of those of shorter ones.
type fold struct {
	how         store.Fold
	sum, weight float64
	low, high   float64
}

func (f *fold) add(v, weight float64) {
	if f.weight == 0 {
		f.low, f.high = v, v
	}
	f.sum, f.weight = f.sum+v*weight, f.weight+weight
	f.low, f.high = min(f.low, v), max(f.high, v)
}

func (f *fold) value() float64 {
	switch f.how {
	case store.Min:
		return f.low
	case store.Max:
		return f.high
	}
	return f.sum / f.weight
}

// settled is how much later than others something of an interval may be read. Blocks of devices, jobs, windows and
// events of the same minute follow one another.
const settled = 2 * time.Hour

// Maker collects blocks, and passes each interval on when nothing more is expected of it.
type Maker struct {
	step  time.Duration
	take  func(*Bucket) error
	open  map[int64]*Bucket
	known map[store.Kind]map[string]store.Quantity

	newest int64
}

// NewMaker returns a maker of intervals of a length, in whole seconds. They begin at multiples of it. take receives
// them in the order of time.
func NewMaker(step time.Duration, take func(*Bucket) error) *Maker {
	m := &Maker{step: step, take: take, open: map[int64]*Bucket{}, known: map[store.Kind]map[string]store.Quantity{}}
	for _, q := range store.Quantities {
		if m.known[q.Of] == nil {
			m.known[q.Of] = map[string]store.Quantity{}
		}
		m.known[q.Of][q.Name] = q
	}
	return m
}

func (m *Maker) bucket(at int64) *Bucket {
	seconds := int64(m.step / time.Second)
	start := at - (at%seconds+seconds)%seconds
	m.newest = max(m.newest, start)
	b := m.open[start]
	if b == nil {
		b = &Bucket{Start: time.Unix(start, 0), Length: m.step, known: map[deviceKey]*Device{}}
		m.open[start] = b
	}
	return b
}

// Add adds the part of a block that is between two times; zero for no limit.
func (m *Maker) Add(item *store.Item, from, until time.Time) error {
	within := func(at time.Time) bool {
		return (from.IsZero() || !at.Before(from)) && (until.IsZero() || at.Before(until))
	}
	for _, e := range item.Entries {
		if within(e.At) {
			b := m.bucket(e.At.Unix())
			b.Entries = append(b.Entries, e)
		}
	}
	if item.Rows != nil {
		weights := m.weights(item.Rows.Columns)
		for i, start := range item.Rows.Starts {
			if within(time.Unix(start, 0)) {
				m.addRow(item.Rows, weights, i)
			}
		}
	}
	return m.flush(m.newest - int64(settled/time.Second))
}

// weights returns the place of the column with the weights of each column; -1 where all weigh the same.
func (m *Maker) weights(columns []store.Column) []int {
	places := map[store.Column]int{}
	for i, c := range columns {
		places[store.Column{Of: c.Of, ID: c.ID, Quantity: c.Quantity}] = i
	}
	weights := make([]int, len(columns))
	for i, c := range columns {
		at, ok := places[store.Column{Of: c.Of, ID: c.ID, Quantity: m.known[c.Of][c.Quantity].By}]
		if weights[i] = at; !ok {
			weights[i] = -1
		}
	}
	return weights
}

func (m *Maker) addRow(rows *store.Rows, weights []int, i int) {
	b := m.bucket(rows.Starts[i])
	for at, c := range rows.Columns {
		v, weight := rows.Values[at][i], rows.Length.Seconds()
		if weights[at] >= 0 {
			weight *= rows.Values[weights[at]][i]
		}
		if !math.IsNaN(v) && weight > 0 {
			b.device(c).add(c.Quantity, m.known[c.Of][c.Quantity].Fold, v, weight)
		}
	}
}

func (b *Bucket) device(c store.Column) *Device {
	key := deviceKey{c.Of, c.ID}
	d := b.known[key]
	if d == nil {
		d = &Device{Of: c.Of, ID: c.ID, Name: c.Name, values: map[string]*fold{}}
		b.known[key] = d
		b.Devices = append(b.Devices, d)
	}
	return d
}

func (d *Device) add(quantity string, how store.Fold, v, weight float64) {
	f := d.values[quantity]
	if f == nil {
		f = &fold{how: how}
		d.values[quantity] = f
	}
	f.add(v, weight)
}

// Close passes the rest on.
func (m *Maker) Close() error { return m.flush(math.MaxInt64) }

// flush passes on what began before a time.
func (m *Maker) flush(before int64) error {
	var ready []int64
	for start := range m.open {
		if start < before {
			ready = append(ready, start)
		}
	}
	slices.Sort(ready)
	for _, start := range ready {
		b := m.open[start]
		delete(m.open, start)
		order := []store.Kind{store.Machine, store.GPU, store.Disk, store.Job}
		slices.SortFunc(b.Devices, func(x, y *Device) int {
			return cmp.Or(cmp.Compare(slices.Index(order, x.Of), slices.Index(order, y.Of)), cmp.Compare(x.ID, y.ID))
		})
		slices.SortStableFunc(b.Entries, func(x, y store.Entry) int { return x.At.Compare(y.At) })
		if err := m.take(b); err != nil {
			return err
		}
	}
	return nil
}
