package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/internal/windows"
)

// keys are those of an Announcement.
var keys = []string{
	"attributes", "epoch", "gpu_ids", "kind", "model", "name", "path", "pid", "run", "traceparent",
}

// decode reads the body of POST /v1/windows.
func decode(body []byte) (*Announcement, error) {
	var request struct {
		Announcement

		Attributes map[string]*string `json:"attributes"` // null counts as absent
	}
	if err := unmarshal(body, &request, `{"kind":"epoch","epoch":3}`, keys...); err != nil {
		return nil, err
	}
	a := &request.Announcement
	a.Attributes = present(request.Attributes)
	return a, a.check()
}

// ending is how a window ended, and attributes of its span.
type ending struct {
	window.Outcome
	attributes map[string]string
}

// endingBody is the body of POST /v1/windows/{id}/end. It may be empty.
type endingBody struct {
	Failed     bool               `json:"failed,omitempty"`
	Ended      string             `json:"ended,omitempty"`
	Attributes map[string]*string `json:"attributes,omitempty"`
}

// maxEnded bounds the words for how a window ended, in bytes.
const maxEnded = 256

func decodeEnding(body []byte) (e ending, err error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return e, nil
	}
	var request endingBody
	if err := unmarshal(body, &request, `{"failed":true}, or no body`, "attributes", "ended", "failed"); err != nil {
		return e, err
	}
	if len(request.Ended) > maxEnded || strings.ContainsFunc(request.Ended, unicode.IsControl) {
		return e, refuse(http.StatusBadRequest, "ended must be one line of %d bytes at most, not %s", maxEnded,
			excerpt(request.Ended))
	}
	e.Outcome = window.Outcome{Unfinished: request.Failed || request.Ended != "", Ended: request.Ended,
		Failed: request.Failed}
	e.attributes = present(request.Attributes)
	return e, checkAttributes(e.attributes)
}

// present returns the attributes that are not null.
func present(all map[string]*string) map[string]string {
	var out map[string]string
	for key, value := range all {
		if value != nil {
			if out == nil {
				out = map[string]string{}
			}
			out[key] = *value
		}
	}
	return out
}

// unmarshal reads the one JSON object that a body must be. It refuses other keys than those of into.
func unmarshal(body []byte, into any, example string, keys ...string) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return describe(err, example, keys)
	}
	end := decoder.InputOffset()
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return refuse(http.StatusBadRequest, "text follows the JSON object after byte %d: send one object alone", end)
	}
	return nil
}

// expected describes the values of keys that are not text.
var expected = map[string]string{
	"attributes": `an object with text values, like {"site":"a"}`,
	"epoch":      "an integer, like 3",
	"failed":     "true or false",
	"gpu_ids":    `an array of GPU ids, like ["GPU-5d3c…"]`,
	"kind":       "text: " + window.KindChoices,
	"pid":        "an integer: a process id",
}

// describe returns what is wrong with a body, and what to send instead.
func describe(err error, example string, keys []string) error {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		return refuse(http.StatusBadRequest, "the body is empty: send a JSON object like %s", example)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return refuse(http.StatusBadRequest, "the body ends before the JSON object does: send a JSON object like %s", example)
	case errors.As(err, &syntax):
		return refuse(http.StatusBadRequest, "the body is not JSON at byte %d (%v): send a JSON object like %s",
			syntax.Offset, err, example)
	case errors.As(err, &wrong) && wrong.Field == "":
		return refuse(http.StatusBadRequest, "the body is not a JSON object: send a JSON object like %s", example)
	case errors.As(err, &wrong):
		key, _, _ := strings.Cut(strings.TrimPrefix(wrong.Field, "Announcement."), ".")
		want := expected[key]
		if want == "" {
			want = "text"
		}
		return refuse(http.StatusBadRequest, "%s must be %s, not %.60s", key, want, wrong.Value)
	}
	if quoted, found := strings.CutPrefix(err.Error(), "json: unknown field "); found {
		key, _ := strconv.Unquote(quoted)
		if near := config.Nearest(key, keys); near != "" {
			return refuse(http.StatusBadRequest, "unknown key %s: did you mean %q?", excerpt(key), near)
		}
		return refuse(http.StatusBadRequest, "unknown key %s: use %s", excerpt(key), choices(keys))
	}
	return refuse(http.StatusBadRequest, "the body cannot be read: %s", excerpt(fmt.Sprint(err)))
}

// Error is the response to a request that was refused: what happened and what to do, in one line.
type Error struct {
	Status int    `json:"-"`
	Text   string `json:"error"`
}

func (e *Error) Error() string { return e.Text }

func refuse(status int, format string, args ...any) *Error {
	return &Error{Status: status, Text: fmt.Sprintf(format, args...)}
}

// asError returns an error of Windows with its HTTP status. fallback is the status of errors without one.
func asError(err error, fallback int) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, windows.ErrTooMany), errors.Is(err, windows.ErrShare):
		return &Error{http.StatusServiceUnavailable, err.Error()}
	case errors.Is(err, windows.ErrUnknown):
		return &Error{http.StatusNotFound, err.Error()}
	}
	return &Error{fallback, err.Error()}
}

// bodyError returns the response to a body that could not be read.
func bodyError(err error) *Error {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes: shorten it", maxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return refuse(http.StatusRequestTimeout, "the request did not arrive within %v: send it again", readTimeout)
	}
	return refuse(http.StatusBadRequest, "the body ended early, send it again: %v", err)
}

// excerpt quotes at most 60 bytes of a text from a client.
func excerpt(text string) string {
	const limit = 60
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}

// Announcement is the body of POST /v1/windows. Only Kind is required.
type Announcement struct {
	Kind        window.Kind       `json:"kind"`
	Name        string            `json:"name,omitempty"`
	Model       string            `json:"model,omitempty"`
	Run         string            `json:"run,omitempty"` // training run; its epochs are compared with one another
	Epoch       *int              `json:"epoch,omitempty"`
	Path        string            `json:"path,omitempty"`        // absolute; it need not exist
	PID         int               `json:"pid,omitempty"`         // 0 for the caller
	GPUIDs      []string          `json:"gpu_ids,omitempty"`     // hw.id; empty for all GPUs
	Traceparent string            `json:"traceparent,omitempty"` // parent of the window's span
	Attributes  map[string]string `json:"attributes,omitempty"`

	parent trace.SpanContext // parsed from Traceparent
}

// Begun is the response to POST /v1/windows.
type Begun struct {
	ID          string `json:"id"`
	Traceparent string `json:"traceparent,omitempty"` // the window's span, for its child spans
}

// Limits of an Announcement.
const (
	maxText       = 1 << 10 // bytes of each text, and of each attribute with its key
	maxGPUs       = 64
	maxAttributes = 64
	maxPID        = 1 << 22 // PID_MAX_LIMIT of the kernel
)

// check returns an error if the announcement cannot become a window.
func (a *Announcement) check() error {
	bad := func(format string, args ...any) error { return refuse(http.StatusBadRequest, format, args...) }
	if !a.Kind.Valid() {
		return a.badKind()
	}
	for _, text := range []struct{ key, value string }{
		{"name", a.Name}, {"model", a.Model}, {"run", a.Run}, {"path", a.Path},
	} {
		if len(text.value) > maxText {
			return bad("%s is %d bytes long: the limit is %d", text.key, len(text.value), maxText)
		}
		if strings.ContainsFunc(text.value, unicode.IsControl) {
			return bad("%s contains a line break or another control character: remove it", text.key)
		}
	}
	switch {
	case a.Path != "" && !filepath.IsAbs(a.Path):
		return bad("path %s is relative: give an absolute path, which begins with /", excerpt(a.Path))
	case a.PID < 0 || a.PID > maxPID:
		return bad("pid %d is not a process ID: give a number from 1 to %d, or leave it out for the caller", a.PID, maxPID)
	case a.Epoch != nil && *a.Epoch < 0:
		return bad("epoch %d is negative: give the number that the program prints, from 0 on", *a.Epoch)
	case len(a.GPUIDs) > maxGPUs:
		return bad("gpu_ids lists %d GPUs: the limit is %d; leave it out for all GPUs", len(a.GPUIDs), maxGPUs)
	}
	if err := checkAttributes(a.Attributes); err != nil {
		return err
	}
	if a.Traceparent != "" {
		var err error
		if a.parent, err = emit.ParseTraceparent(a.Traceparent); err != nil {
			return bad("traceparent: %v", err)
		}
	}
	for _, id := range a.GPUIDs {
		if id == "" || len(id) > maxText || strings.ContainsFunc(id, unicode.IsControl) {
			return bad("gpu_ids contains %s, which is not a GPU's ID: give IDs like GPU-5d3c…, as in nvidia-smi -L", excerpt(id))
		}
	}
	return nil
}

// checkAttributes returns an error if attributes cannot be those of a window.
func checkAttributes(all map[string]string) error {
	bad := func(format string, args ...any) error { return refuse(http.StatusBadRequest, format, args...) }
	if len(all) > maxAttributes {
		return bad("attributes has %d entries: the limit is %d", len(all), maxAttributes)
	}
	for key, value := range all {
		switch {
		case key == "" || strings.ContainsFunc(key, unicode.IsControl):
			return bad("attributes has the key %s: give a printable one", excerpt(key))
		case len(key)+len(value) > maxText:
			return bad("the attribute %s has %d bytes with its key: the limit is %d", excerpt(key), len(key)+len(value), maxText)
		}
	}
	return nil
}

func (a *Announcement) badKind() error {
	if a.Kind == "" {
		return refuse(http.StatusBadRequest, "kind is missing: give %s", window.KindChoices)
	}
	if near := config.Nearest(string(a.Kind), window.KindNames()); near != "" {
		return refuse(http.StatusBadRequest, "%s is not a kind of window: did you mean %q?", excerpt(string(a.Kind)), near)
	}
	return refuse(http.StatusBadRequest, "%s is not a kind of window: give %s", excerpt(string(a.Kind)),
		window.KindChoices)
}

func choices(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// window returns the window to open. The caller is its process if the announcement names none.
func (a *Announcement) window(by *caller) window.Window {
	w := window.Window{
		Kind: a.Kind, Name: a.Name, Model: a.Model, Run: a.Run, Path: a.Path, Source: window.Announced,
		PID: a.PID, GPUs: a.GPUIDs, Attributes: a.Attributes, Client: by.name,
	}
	if a.Epoch != nil {
		w.Epoch, w.HasEpoch = *a.Epoch, true
	}
	if w.PID == 0 {
		w.PID, w.ByClient = by.pid, by.pid != 0
	}
	return w
}
