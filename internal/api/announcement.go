package api

import (
	"net/http"
	"path/filepath"
	"strings"
	"unicode"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/window"
)

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
