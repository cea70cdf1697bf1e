package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
)

// MaxBytes bounds the size of a report. Ten thousand windows, the maximum of a run, with eight disks each take about
// 20 MiB.
const MaxBytes = 64 << 20

// maxEntries bounds a list, and maxObjects all of a report: three bytes of JSON can become hundreds in memory.
const (
	maxEntries = 100_000
	maxObjects = 2_000_000
)

// Document is the windows of a report, as docs/report.md describes it.
type Document struct {
	Run     *Report   `json:"run,omitempty"` // the whole run, if there was one
	Windows []*Report `json:"windows"`
}

// given is a report as it is read, which may lack its duration.
type given struct {
	Report
	Duration *float64 `json:"duration_s"`
}

func (g *given) report() (*Report, error) {
	switch {
	case g.Kind == "":
		return nil, errors.New("kind is missing")
	case g.Duration == nil:
		return nil, errors.New("duration_s is missing")
	}
	g.Report.Duration = *g.Duration
	return &g.Report, nil
}

// Read reads a report of --report (run, record, replay) or `demo --json`, or the report of a single window from the
// API. Unknown keys are ignored. The errors do not contain the file's name.
func Read(r io.Reader) (*Document, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > MaxBytes:
		return nil, fmt.Errorf("it is larger than %d MiB, the maximum size of a report", MaxBytes>>20)
	case bytes.Count(text, []byte("{")) > maxObjects:
		return nil, fmt.Errorf("it has over %d objects, the maximum of a report", maxObjects)
	}
	var in struct {
		Run     *given       `json:"run"`
		Windows *list[given] `json:"windows"`
		given                // the report of a single one
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, describe(err, len(text))
	}
	d := &Document{}
	if in.Run != nil {
		if d.Run, err = in.Run.report(); err != nil {
			return nil, fmt.Errorf("the whole run: %w", err)
		}
	}
	var windows list[given]
	switch {
	case in.Windows != nil:
		windows = *in.Windows
	case in.Kind != "":
		windows = list[given]{in.given}
	case in.Run == nil:
		return nil, errors.New(`it has neither "windows" nor "kind"`)
	}
	for i := range windows {
		w, err := windows[i].report()
		if err != nil {
			return nil, fmt.Errorf("window %d: %w", i+1, err)
		}
		d.Windows = append(d.Windows, w)
	}
	if len(d.Windows) > 0 {
		return d, nil
	}
	if d.Run == nil {
		return nil, errors.New("it has no windows")
	}
	d.Windows = []*Report{d.Run}
	return d, nil
}

// ReadWindow reads the report of one window.
func ReadWindow(text []byte) (*Report, error) {
	var g given
	if err := json.Unmarshal(text, &g); err != nil {
		return nil, describe(err, len(text))
	}
	return g.report()
}

// list is an array of bounded length. An error names the entry.
type list[T any] []T

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
	case given:
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
	var notTime *time.ParseError
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
		field := wrong.Field
		for _, embedded := range []string{"given.", "Report."} { // they have no keys of their own
			field = strings.TrimPrefix(field, embedded)
		}
		return fmt.Errorf("%s is %s instead of %s", field, article(wrong.Value), kindOf(wrong.Type))
	case errors.As(err, &notTime), strings.HasPrefix(err.Error(), "Time."): // time.Time has no type for the second one
		return fmt.Errorf("a time is not as in %s", time.RFC3339)
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
