package sample

import (
	"encoding/json"
	"iter"
)

// Values holds a value for each of at most 64 quantities that is told. Its zero value holds none.
type Values[Q quantity] struct {
	has    uint64 // a bit for each quantity
	values [64]float64
}

// quantity is a list of quantities, from 0 on. Its String is the name in recordings, and "" beyond the last.
type quantity interface {
	~uint8
	String() string
}

// Set takes a value over.
func (v *Values[Q]) Set(q Q, value float64) {
	v.has |= 1 << q
	v.values[q] = value
}

// Drop forgets a value.
func (v *Values[Q]) Drop(q Q) {
	v.has &^= 1 << q
	v.values[q] = 0
}

// Get gives a value, and whether it is told.
func (v *Values[Q]) Get(q Q) (value float64, told bool) { return v.values[q], v.has&(1<<q) != 0 }

// Empty says that nothing is told.
func (v *Values[Q]) Empty() bool { return v.has == 0 }

// All goes through what is told.
func (v *Values[Q]) All() iter.Seq2[Q, float64] {
	return func(yield func(Q, float64) bool) {
		for q := range Q(len(v.values)) {
			if v.has&(1<<q) != 0 && !yield(q, v.values[q]) {
				return
			}
		}
	}
}

// MarshalJSON writes an object of what is told, by name.
func (v Values[Q]) MarshalJSON() ([]byte, error) {
	byName := make(map[string]float64, len(v.values))
	for q, value := range v.All() {
		byName[q.String()] = value
	}
	return json.Marshal(byName)
}

// UnmarshalJSON reads such an object. A name that it does not know, from a newer program, is passed over.
func (v *Values[Q]) UnmarshalJSON(text []byte) error {
	var byName map[string]float64
	if err := json.Unmarshal(text, &byName); err != nil {
		return err
	}
	*v = Values[Q]{}
	for q := range Q(len(v.values)) {
		if value, told := byName[q.String()]; told {
			v.Set(q, value)
		}
	}
	return nil
}
