package agent

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/stallspan/stallspan/agent/internal/stat"
)

// statTime is the format of times: RFC 3339 in UTC with milliseconds, so that lines can be sorted by it.
const statTime = "2006-01-02T15:04:05.000Z07:00"

// statLine is a line of stat --json, as docs/stat.md describes it.
type statLine struct {
	Time     string         `json:"time"`
	Interval float64        `json:"interval_s"`
	Pressure *stat.Pressure `json:"pressure,omitempty"`
	Core     *stat.Core     `json:"busiest_core,omitempty"`
	GPUs     []statGPU      `json:"gpus"`
	Disks    []stat.Disk    `json:"disks"`
}

// statGPU is a GPU with its use.
type statGPU struct {
	*stat.GPU
	*stat.GPUUse
}

func printStatJSON(to *bytes.Buffer, r *stat.Rates) error {
	r = rounded(r)
	line := statLine{Time: r.At.Wall.UTC().Format(statTime), Interval: round(r.Interval.Seconds()), Pressure: r.Pressure,
		Core: r.BusiestCore,
		GPUs: make([]statGPU, len(r.GPUs)), Disks: r.Disks}
	for i := range r.GPUs {
		line.GPUs[i] = statGPU{&r.GPUs[i], &r.GPUs[i].Use}
	}
	if line.Disks == nil {
		line.Disks = []stat.Disk{} // an array, also of nothing
	}
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(line)
}

// significantDigits of numbers in JSON and CSV. Larger numbers are whole.
const significantDigits = 6

func round(v float64) float64 {
	if math.Abs(v) >= math.Pow10(significantDigits) {
		return math.Round(v)
	}
	short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', significantDigits, 64), 64)
	if err != nil {
		return v // not possible: the text is a number
	}
	return short
}

// rounded returns a copy with rounded numbers.
func rounded(r *stat.Rates) *stat.Rates {
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
			f.SetFloat(round(p))
		case *float64:
			if p != nil {
				f.Set(reflect.ValueOf(new(round(*p))))
			}
		case stat.GPUUse:
			roundFields(f)
		}
	}
}
