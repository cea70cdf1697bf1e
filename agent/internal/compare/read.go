package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

// MaxBytes bounds the size of a report. Ten thousand windows, the maximum of a run, with eight disks each take about
// 20 MiB.
const MaxBytes = 64 << 20

// Document is the part of a report (docs/report.md) that is compared. Other keys are ignored.
type Document struct {
	Run     *Window      // the whole run; nil if the report has none
	Windows list[Window] // at least one
}

// Window is the report of one window. Times are seconds, sizes bytes.
type Window struct {
	ID           string         `json:"id"`
	Kind         window.Kind    `json:"kind"`
	Name         string         `json:"name"`
	Model        string         `json:"model"`
	Epoch        *int           `json:"epoch"`
	Unfinished   bool           `json:"unfinished"`
	SlowReason   string         `json:"slowness_reason"`
	Duration     *float64       `json:"duration_s"`
	Verdict      window.Verdict `json:"verdict"`
	Finding      string         `json:"finding"`
	Slow         bool           `json:"slow"`
	SpeedupBound *float64       `json:"speedup_bound"`
	SpeedupLow   float64        `json:"speedup_low"`
	SpeedupHigh  float64        `json:"speedup_high"`
	Interrupted  bool           `json:"interrupted"`
	GPU          *struct {
		IDs  list[string] `json:"ids"`
		Busy float64      `json:"busy_s"`
	} `json:"gpu"`
	Process *struct {
		OnCPU float64 `json:"on_cpu_s"`
	} `json:"process"`
	Stall *struct {
		Storage float64  `json:"storage_s"`
		CPU     *float64 `json:"cpu_s"`
		Other   float64  `json:"other_s"`
	} `json:"stall"`
	Disks list[Disk] `json:"disks"`
}

// Disk is the work of one disk in a window, for all programs. The awaits are nil without operations.
type Disk struct {
	Name       string   `json:"name"`
	ReadBytes  uint64   `json:"read_bytes"`
	ReadAwait  *float64 `json:"read_await_s"`
	WriteBytes uint64   `json:"write_bytes"`
	WriteAwait *float64 `json:"write_await_s"`
}

// Label is the window's name for people.
func (w *Window) Label() string {
	return explain.NameOf(w.Kind, w.Name, w.Model, w.Epoch)
}

// Read reads a report of --report (run, record, replay) or `demo --json`, or the report of a single window from the
// API. The errors do not contain the file's name.
func Read(r io.Reader) (*Document, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("it is larger than %d MiB, the maximum size of a report", MaxBytes>>20)
	}
	var in struct {
		Run     *Window       `json:"run"`
		Windows *list[Window] `json:"windows"`
		Window                // the report of a single one
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, describe(err, len(text))
	}
	d := &Document{Run: in.Run}
	switch {
	case in.Windows != nil:
		d.Windows = *in.Windows
	case in.Kind != "":
		d.Windows = list[Window]{in.Window}
	case in.Run == nil:
		return nil, errors.New(`it has neither "windows" nor "kind"`)
	}
	if len(d.Windows) == 0 && d.Run != nil {
		d.Windows = list[Window]{*d.Run}
	}
	return d, d.check()
}

// list is an array of bounded length, as three bytes of JSON can become hundreds in memory.
type list[T any] []T

const maxEntries = 100_000

// UnmarshalJSON reads an array.
func (l *list[T]) UnmarshalJSON(text []byte) error {
	var entries []json.RawMessage
	if err := json.Unmarshal(text, &entries); err != nil {
		return describe(err, len(text))
	}
	if len(entries) > maxEntries {
		return fmt.Errorf("it has %d %ss: the maximum is %d", len(entries), noun[T](), maxEntries)
	}
	*l = make([]T, len(entries))
	for i, entry := range entries {
		if err := json.Unmarshal(entry, &(*l)[i]); err != nil {
			return fmt.Errorf("%s %d: %w", noun[T](), i+1, describe(err, len(entry)))
		}
	}
	return nil
}

// noun names the elements of a list.
func noun[T any]() string {
	switch any(*new(T)).(type) {
	case Window:
		return "window"
	case Disk:
		return "disk"
	}
	return "GPU id"
}

// describe replaces the names of Go's types in an error of encoding/json.
func describe(err error, size int) error {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax) && size == 0:
		return errors.New("it is empty")
	case errors.As(err, &syntax) && int(syntax.Offset) >= size:
		return errors.New("it is cut off, or not JSON")
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not JSON: see byte %d", syntax.Offset)
	case errors.As(err, &wrong) && wrong.Field == "":
		return fmt.Errorf("there is %s instead of %s", article(wrong.Value), kindOf(wrong.Type))
	case errors.As(err, &wrong):
		field := strings.TrimPrefix(wrong.Field, "Window.") // of a single one
		return fmt.Errorf("%s is %s instead of %s", field, article(wrong.Value), kindOf(wrong.Type))
	}
	return err
}

// article translates encoding/json's name of a value: "string", or "number -1".
func article(value string) string {
	switch kind, number, _ := strings.Cut(value, " "); {
	case number != "":
		return number
	case kind == "string":
		return "text"
	case kind == "bool":
		return "true or false"
	case kind == "array" || kind == "object":
		return "an " + kind
	default:
		return "a " + kind
	}
}

func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Uint64:
		return "a whole number"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}
