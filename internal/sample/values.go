package sample

import (
	"encoding/json"
	"iter"
)

// Values holds the known values of at most 64 quantities. The zero value holds none.
type Values[Q quantity] struct {
	has    uint64 // a bit for each quantity
	values [64]float64
}

// quantity is an enumeration from 0. String returns the name in recordings, and "" beyond the last.
type quantity interface {
	~uint8
	String() string
}

// Set stores a value.
func (v *Values[Q]) Set(q Q, value float64) {
	v.has |= 1 << q
	v.values[q] = value
}

// Drop removes a value.
func (v *Values[Q]) Drop(q Q) {
	v.has &^= 1 << q
	v.values[q] = 0
}

// Get returns a value, and whether it is known.
func (v *Values[Q]) Get(q Q) (value float64, known bool) { return v.values[q], v.has&(1<<q) != 0 }

// Empty reports whether no value is known.
func (v *Values[Q]) Empty() bool { return v.has == 0 }

// All iterates over the known values.
func (v *Values[Q]) All() iter.Seq2[Q, float64] {
	return func(yield func(Q, float64) bool) {
		for q := range Q(len(v.values)) {
			if v.has&(1<<q) != 0 && !yield(q, v.values[q]) {
				return
			}
		}
	}
}

// MarshalJSON writes an object with the known values by name.
func (v Values[Q]) MarshalJSON() ([]byte, error) {
	byName := make(map[string]float64, len(v.values))
	for q, value := range v.All() {
		byName[q.String()] = value
	}
	return json.Marshal(byName)
}

// UnmarshalJSON reads such an object and ignores unknown names, which come from newer versions.
func (v *Values[Q]) UnmarshalJSON(text []byte) error {
	var byName map[string]float64
	if err := json.Unmarshal(text, &byName); err != nil {
		return err
	}
	*v = Values[Q]{}
	for q := range Q(len(v.values)) {
		if value, ok := byName[q.String()]; ok {
			v.Set(q, value)
		}
	}
	return nil
}
