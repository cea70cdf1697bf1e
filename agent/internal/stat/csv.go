package stat

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/stallspan/stallspan/agent/internal/output"
)

// csvColumns is the header of stat --csv. The columns after "kind" are keys of stat --json. Add new columns at the
// end.
var csvColumns = [...]string{"time", "interval_s", "kind", "name", "id", "status", "leaf", "utilization",
	"reads_per_s", "read_bytes_per_s", "reads_merged_per_s", "read_await_ms", "read_size_bytes",
	"writes_per_s", "write_bytes_per_s", "writes_merged_per_s", "write_await_ms", "write_size_bytes",
	"discards_per_s", "discard_bytes_per_s", "discard_await_ms", "flushes_per_s", "flush_await_ms",
	"await_ms", "queue_depth",
	"memory_used_bytes", "memory_total_bytes", "temperature_celsius", "power_watts",
	"pcie_link_width", "pcie_link_generation",
	"io_some", "io_full",
	"sm_active", "sm_occupancy", "tensor_active", "dram_active", "encoder", "decoder",
	"pcie_received_bytes_per_s", "pcie_sent_bytes_per_s", "nvlink_received_bytes_per_s", "nvlink_sent_bytes_per_s",
	"sm_clock_hz", "power_limit_watts", "throttled", "throttled_by"}

// csvTable writes one row for each device and interval. kind is pressure, core, gpu or disk. Missing values are empty.
type csvTable struct{ begun bool }

func (c *csvTable) print(to *bytes.Buffer, r *Rates) error {
	r = rounded(r)
	w := csv.NewWriter(to)
	if !c.begun {
		c.begun = true
		_ = w.Write(csvColumns[:])
	}
	moment, interval := r.At.Wall.UTC().Format(output.TimeFormat),
		strconv.FormatFloat(output.Round(r.Interval.Seconds()), 'f', -1, 64)
	type thing struct {
		kind  string
		value any
	}
	var all []thing
	if r.Pressure != nil {
		all = append(all, thing{"pressure", r.Pressure})
	}
	if r.BusiestCore != nil {
		all = append(all, thing{"core", r.BusiestCore})
	}
	for i := range r.GPUs {
		all = append(all, thing{"gpu", &r.GPUs[i]})
	}
	for i := range r.Disks {
		all = append(all, thing{"disk", &r.Disks[i]})
	}
	for _, t := range all {
		fields, err := fieldsOf(t.value)
		if err != nil {
			return err
		}
		row := []string{moment, interval, t.kind}
		for _, column := range csvColumns[len(row):] {
			row = append(row, fields[column])
		}
		_ = w.Write(row) // w keeps the first error
	}
	w.Flush()
	return w.Error()
}

// fieldsOf returns a device's values by JSON key, so that both formats have the same names and digits.
func fieldsOf(thing any) (map[string]string, error) {
	text, err := json.Marshal(thing)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var values map[string]any
	if err := decoder.Decode(&values); err != nil {
		return nil, err
	}
	fields := make(map[string]string, len(values))
	for key, value := range values {
		fields[key] = output.Printable(fmt.Sprint(value))
	}
	return fields, nil
}
