package recording

import (
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// Window is what a program announced when a window began.
type Window struct {
	Kind       window.Kind       `json:"kind"`
	Name       string            `json:"name,omitempty"`
	Model      string            `json:"model,omitempty"`
	Run        string            `json:"run,omitempty"`
	Path       string            `json:"path,omitempty"`
	Epoch      *int              `json:"epoch,omitempty"`
	Source     window.Source     `json:"source,omitempty"`
	Owned      bool              `json:"owned,omitempty"`
	Job        string            `json:"job,omitempty"`
	PID        int               `json:"pid,omitempty"`
	ByClient   bool              `json:"by_client,omitempty"`
	GPUs       []string          `json:"gpu_ids,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Seen       *seen             `json:"seen,omitempty"`
	Confidence float64           `json:"confidence,omitempty"` // of a detected window, as the next three
	Open       time.Duration     `json:"open,omitempty"`       // of its start and end together
	StartOpen  time.Duration     `json:"start_open,omitempty"` // of its start
	Unread     time.Duration     `json:"unread,omitempty"`     // after its start, without a reading of its job
	Phases     []phase           `json:"phases,omitempty"`
}

// phase is a part of a load, on the monotonic clock.
type phase struct {
	Name  string        `json:"name"`
	Start time.Duration `json:"start"`
	End   time.Duration `json:"end"`
	Bytes uint64        `json:"bytes,omitempty"`
}

// maxPhases bounds the phases of one load.
const maxPhases = 16

// seen is what was at the window's path when it began.
type seen struct {
	Size   uint64   `json:"size,omitempty"`   // bytes of the file, or of the files of the folder
	Cached *uint64  `json:"cached,omitempty"` // bytes of them in the page cache; absent if unknown
	Before uint64   `json:"before,omitempty"` // bytes of them in it after the last load of the path; absent if unknown
	Layer  bool     `json:"layer,omitempty"`  // it is in a read-only layer of an overlay
	Disks  []string `json:"disks,omitempty"`  // that hold it
	Above  []string `json:"above,omitempty"`  // the devices between the path and these disks
	Device string   `json:"device,omitempty"` // kind of these disks, or of what replaces them
}

// maxDisks bounds the disks below one path.
const maxDisks = 64

// NewWindow returns w as a recording has it.
func NewWindow(w *window.Window) *Window {
	r := &Window{
		Kind: w.Kind, Name: w.Name, Model: w.Model, Run: w.Run, Path: w.Path, Source: w.Source, Owned: w.Owned,
		Job: w.Job, PID: w.PID, ByClient: w.ByClient, GPUs: w.GPUs, Attributes: w.Attributes,
	}
	if w.HasEpoch {
		r.Epoch = &w.Epoch
	}
	r.Confidence, r.Open, r.StartOpen, r.Unread = w.Confidence, w.Open, w.StartOpen, w.Unread
	for _, p := range w.Phases {
		r.Phases = append(r.Phases, phase(p))
	}
	if at := &w.Seen; at.Size != 0 || len(at.Under) > 0 || at.Device != "" {
		r.Seen = &seen{Size: at.Size, Before: at.Before, Layer: at.Layer, Disks: at.Under, Above: at.Above, Device: at.Device}
		if at.HasCached {
			r.Seen.Cached = &at.Cached
		}
	}
	return r
}

// Window returns the window with an id.
func (r *Window) Window(id string) window.Window {
	w := window.Window{
		ID: id, Kind: r.Kind, Name: r.Name, Model: r.Model, Run: r.Run, Path: r.Path, Source: r.Source, Owned: r.Owned,
		Job: r.Job, PID: r.PID, ByClient: r.ByClient, GPUs: r.GPUs, Attributes: r.Attributes,
	}
	if r.Epoch != nil {
		w.Epoch, w.HasEpoch = *r.Epoch, true
	}
	w.Confidence, w.Unread = min(max(0, r.Confidence), 1), max(0, r.Unread)
	w.Open, w.StartOpen = max(0, r.Open), min(max(0, r.StartOpen), max(0, r.Open))
	for _, p := range r.Phases[:min(len(r.Phases), maxPhases)] {
		if p.End > p.Start {
			w.Phases = append(w.Phases, window.Phase(p))
		}
	}
	if at := r.Seen; at != nil {
		w.Seen = window.Seen{Size: at.Size, Under: at.Disks[:min(len(at.Disks), maxDisks)], Device: at.Device}
		w.Seen.Before, w.Seen.Layer = at.Before, at.Layer
		w.Seen.Above = at.Above[:min(len(at.Above), maxDisks)]
		if at.Cached != nil {
			w.Seen.Cached, w.Seen.HasCached = *at.Cached, true
		}
	}
	return w
}
