package history

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/store"
)

// csvHeader are the names of all quantities, in the order of store.Quantities.
var csvHeader = func() (names []string) {
	known := map[string]bool{}
	for _, q := range store.Quantities {
		if !known[q.Name] {
			known[q.Name] = true
			names = append(names, q.Name)
		}
	}
	return names
}()

// csvLines writes a line for each device and interval. Missing values are empty.
type csvLines struct{ begun bool }

func (c *csvLines) bucket(to *bytes.Buffer, b *Bucket) error {
	w := csv.NewWriter(to)
	if !c.begun {
		c.begun = true
		_ = w.Write(append([]string{"time", "interval_s", "kind", "name", "id"}, csvHeader...)) // w keeps the first error
	}
	for _, d := range b.Devices {
		row := []string{b.Start.UTC().Format(time.RFC3339), strconv.FormatFloat(b.Length.Seconds(), 'f', -1, 64),
			string(d.Of), output.Printable(d.Name), output.Printable(d.ID)}
		for _, name := range csvHeader {
			text := ""
			if v, ok := d.Get(name); ok {
				text = strconv.FormatFloat(output.Round(v), 'f', -1, 64)
			}
			row = append(row, text)
		}
		_ = w.Write(row)
	}
	w.Flush()
	return w.Error()
}

func (c *csvLines) end(h *Run) error {
	if c.begun {
		return nil
	}
	var head bytes.Buffer
	_ = c.bucket(&head, new(Bucket)) // nothing but the header
	_, err := h.out.Write(head.Bytes())
	return output.Printed(err)
}

// jsonLines writes an object for each device and interval, window and event.
type jsonLines struct{}

// jsonValues is a line about a device.
type jsonValues struct {
	Time     string             `json:"time"`
	Interval float64            `json:"interval_s"`
	Kind     store.Kind         `json:"kind"`
	Name     string             `json:"name,omitempty"`
	ID       string             `json:"id,omitempty"`
	Values   map[string]float64 `json:"values"`
}

// jsonEntry is a line about a window or an event.
type jsonEntry struct {
	Time   string          `json:"time"`
	Kind   string          `json:"kind"`
	Report json.RawMessage `json:"report,omitempty"` // of a window
	Event  json.RawMessage `json:"event,omitempty"`
}

func (jsonLines) bucket(to *bytes.Buffer, b *Bucket) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	for _, d := range b.Devices {
		line := jsonValues{Time: b.Start.UTC().Format(time.RFC3339), Interval: b.Length.Seconds(), Kind: d.Of,
			Name: d.Name, ID: d.ID, Values: map[string]float64{}}
		for _, name := range csvHeader {
			if v, ok := d.Get(name); ok {
				line.Values[name] = output.Round(v)
			}
		}
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	for _, e := range b.Entries {
		line := jsonEntry{Time: e.At.UTC().Format(output.TimeFormat), Kind: e.Kind.String(), Report: e.Text}
		if e.Kind == store.Event {
			line.Report, line.Event = nil, e.Text
		}
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	return nil
}

func (jsonLines) end(*Run) error { return nil }
