package stat

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/stallspan/stallspan/agent/internal/output"
)

// jsonLine is a line of stat --json, as docs/stat.md describes it.
type jsonLine struct {
	Time     string    `json:"time"`
	Interval float64   `json:"interval_s"`
	Pressure *Pressure `json:"pressure,omitempty"`
	Core     *Core     `json:"busiest_core,omitempty"`
	GPUs     []GPU     `json:"gpus"`
	Disks    []Disk    `json:"disks"`
}

func printJSON(to *bytes.Buffer, r *Rates) error {
	r = rounded(r)
	line := jsonLine{Time: r.At.Wall.UTC().Format(output.TimeFormat),
		Interval: output.Round(r.Interval.Seconds()), Pressure: r.Pressure,
		Core: r.BusiestCore,
		GPUs: append([]GPU{}, r.GPUs...), Disks: append([]Disk{}, r.Disks...)} // arrays, also of nothing
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(line)
}

// rounded returns a copy with rounded numbers.
func rounded(r *Rates) *Rates {
	c := *r
	roundIn(reflect.ValueOf(&c).Elem())
	return &c
}

// roundIn rounds the numbers of a value, and makes copies of what others share with it.
func roundIn(v reflect.Value) {
	switch v.Kind() {
	case reflect.Float64:
		v.SetFloat(output.Round(v.Float()))
	case reflect.Pointer:
		if !v.IsNil() {
			copied := reflect.New(v.Type().Elem())
			copied.Elem().Set(v.Elem())
			roundIn(copied.Elem())
			v.Set(copied)
		}
	case reflect.Slice:
		v.Set(reflect.AppendSlice(reflect.Zero(v.Type()), v))
		for i := range v.Len() {
			roundIn(v.Index(i))
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				roundIn(field)
			}
		}
	}
}
