package stat

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/stallspan/stallspan/agent/internal/output"
)

// jsonLine is a line of stat --json, as docs/stat.md describes it.
type jsonLine struct {
	Time     string    `json:"time"`
	Interval float64   `json:"interval_s"`
	Pressure *Pressure `json:"pressure,omitempty"`
	Core     *Core     `json:"busiest_core,omitempty"`
	GPUs     []jsonGPU `json:"gpus"`
	Disks    []Disk    `json:"disks"`
}

// jsonGPU is a GPU with its use.
type jsonGPU struct {
	*GPU
	*GPUUse
}

func printJSON(to *bytes.Buffer, r *Rates) error {
	r = rounded(r)
	line := jsonLine{Time: r.At.Wall.UTC().Format(output.TimeFormat),
		Interval: output.Round(r.Interval.Seconds()), Pressure: r.Pressure,
		Core: r.BusiestCore,
		GPUs: make([]jsonGPU, len(r.GPUs)), Disks: r.Disks}
	for i := range r.GPUs {
		line.GPUs[i] = jsonGPU{&r.GPUs[i], &r.GPUs[i].Use}
	}
	if line.Disks == nil {
		line.Disks = []Disk{} // an array, also of nothing
	}
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(line)
}

// rounded returns a copy with rounded numbers.
func rounded(r *Rates) *Rates {
	c := *r
	c.Disks, c.GPUs = slices.Clone(r.Disks), slices.Clone(r.GPUs)
	for i := range c.Disks {
		roundFields(reflect.ValueOf(&c.Disks[i]).Elem())
	}
	for i := range c.GPUs {
		roundFields(reflect.ValueOf(&c.GPUs[i]).Elem())
	}
	if r.Pressure != nil {
		c.Pressure = new(*r.Pressure)
		roundFields(reflect.ValueOf(c.Pressure).Elem())
	}
	if r.BusiestCore != nil {
		c.BusiestCore = new(*r.BusiestCore)
		roundFields(reflect.ValueOf(c.BusiestCore).Elem())
	}
	return &c
}

// roundFields rounds the numbers of a struct, also of those in it. It changes no number that a pointer shares.
func roundFields(v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); p := f.Interface().(type) {
		case float64:
			f.SetFloat(output.Round(p))
		case *float64:
			if p != nil {
				f.Set(reflect.ValueOf(new(output.Round(*p))))
			}
		case GPUUse:
			roundFields(f)
		}
	}
}
