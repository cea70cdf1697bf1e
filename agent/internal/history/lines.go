package history

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/store"
)

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
		for name, f := range d.values {
			line.Values[name] = output.Round(f.value())
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
