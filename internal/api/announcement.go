package api

import (
	"net/http"
	"path/filepath"
	"strings"
	"unicode"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/window"
)

// Announcement is the body of POST /v1/windows: what a window is about. Only Kind is needed.
type Announcement struct {
	Kind        window.Kind       `json:"kind"`
	Name        string            `json:"name,omitempty"`
	Model       string            `json:"model,omitempty"`
	Run         string            `json:"run,omitempty"` // the training run; its epochs are compared with one another
	Epoch       *int              `json:"epoch,omitempty"`
	Path        string            `json:"path,omitempty"`        // absolute; it need not exist
	PID         int               `json:"pid,omitempty"`         // the caller's where it is 0
	GPUIDs      []string          `json:"gpu_ids,omitempty"`     // hw.id; all GPUs where it is empty
	Traceparent string            `json:"traceparent,omitempty"` // of the span that the window's becomes a child of
	Attributes  map[string]string `json:"attributes,omitempty"`

	parent trace.SpanContext // parsed from Traceparent
}

// Begun is the answer to POST /v1/windows.
type Begun struct {
	ID          string `json:"id"`
	Traceparent string `json:"traceparent,omitempty"` // of the window's own span, for the spans within it
}

// Bounds of an Announcement.
const (
	mostText       = 1 << 10 // bytes of each text, and of each attribute with its key
	mostGPUs       = 64
	mostAttributes = 64
	largestPID     = 1 << 22 // PID_MAX_LIMIT of the kernel
)

var kinds = []string{string(window.ModelLoad), string(window.Epoch), string(window.Checkpoint), string(window.Custom)}

// check refuses what is not fit to become a window.
func (a *Announcement) check() error {
	bad := func(format string, args ...any) error { return refuse(http.StatusBadRequest, format, args...) }
	if !a.Kind.Valid() {
		return a.badKind()
	}
	for _, text := range []struct{ key, value string }{{"name", a.Name}, {"model", a.Model}, {"run", a.Run}, {"path", a.Path}} {
		if len(text.value) > mostText {
			return bad("%s is %d bytes long: at most %d are taken", text.key, len(text.value), mostText)
		}
		if strings.ContainsFunc(text.value, unicode.IsControl) {
			return bad("%s holds a line break or another control character: leave it out", text.key)
		}
	}
	switch {
	case a.Path != "" && !filepath.IsAbs(a.Path):
		return bad("path %s is relative: give the absolute one, which begins with /", excerpt(a.Path))
	case a.PID < 0 || a.PID > largestPID:
		return bad("pid %d is no process: give a number from 1 to %d, or leave it out for the caller's own", a.PID, largestPID)
	case len(a.GPUIDs) > mostGPUs:
		return bad("gpu_ids lists %d GPUs: at most %d are taken; leave it out for all of them", len(a.GPUIDs), mostGPUs)
	case len(a.Attributes) > mostAttributes:
		return bad("attributes has %d entries: at most %d are taken", len(a.Attributes), mostAttributes)
	}
	if a.Traceparent != "" {
		var err error
		if a.parent, err = emit.ParseTraceparent(a.Traceparent); err != nil {
			return bad("traceparent: %v", err)
		}
	}
	for _, id := range a.GPUIDs {
		if id == "" || len(id) > mostText || strings.ContainsFunc(id, unicode.IsControl) {
			return bad("gpu_ids holds %s, which is no GPU's id: give ids like GPU-5d3c…, as nvidia-smi -L lists them", excerpt(id))
		}
	}
	for key, value := range a.Attributes {
		switch {
		case key == "" || strings.ContainsFunc(key, unicode.IsControl):
			return bad("attributes has the key %s: give one that can be read", excerpt(key))
		case len(key)+len(value) > mostText:
			return bad("the attribute %s is %d bytes long with its key: at most %d are taken", excerpt(key), len(key)+len(value), mostText)
		}
	}
	return nil
}

func (a *Announcement) badKind() error {
	if a.Kind == "" {
		return refuse(http.StatusBadRequest, "kind is missing: give %s", choices(kinds))
	}
	return refuse(http.StatusBadRequest, "%s is no kind of window: give %s", excerpt(string(a.Kind)), choices(kinds))
}

func choices(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// window is what the monitor is to watch. caller stands for a pid that was not given.
func (a *Announcement) window(caller int) window.Window {
	w := window.Window{
		Kind: a.Kind, Name: a.Name, Model: a.Model, Run: a.Run, Path: a.Path, Source: window.Announced,
		PID: a.PID, GPUs: a.GPUIDs, Attributes: a.Attributes,
	}
	if a.Epoch != nil {
		w.Epoch, w.HasEpoch = *a.Epoch, true
	}
	if w.PID == 0 {
		w.PID = caller
	}
	return w
}
