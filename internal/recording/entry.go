package recording

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Entry is one line after the header: a reading, or a mark. Entries are in the order in which they took effect, so
// applying them again gives the same reports.
type Entry struct {
	Source string         `json:"source,omitempty"` // that took the reading
	Edge   uint64         `json:"edge,omitempty"`   // the reading is for this edge of windows, not for the history
	Sample *sample.Sample `json:"sample,omitempty"`
	Mark   *Mark          `json:"mark,omitempty"`
}

// Op is the kind of a Mark.
type Op string

// The ops.
const (
	Tick   Op = "tick"   // a round of readings is complete
	Edge   Op = "edge"   // the readings for an edge are complete
	Follow Op = "follow" // a job is followed
	Leave  Op = "leave"  // a job is unfollowed
	Begin  Op = "begin"  // a window begins at an edge
	End    Op = "end"    // a window ends at an edge
	Drop   Op = "drop"   // a window is discarded
)

// Mark is an event between two readings.
type Mark struct {
	Op             Op                  `json:"op"`
	Edge           uint64              `json:"edge,omitempty"`         // of Edge, Begin and End
	At             *sample.Stamp       `json:"at,omitempty"`           // of Edge, Begin and End: the moment
	ID             string              `json:"id,omitempty"`           // of a window, or of a job
	Scope          string              `json:"scope,omitempty"`        // of Follow: the pressure scope of the job
	OwnScope       bool                `json:"own_scope,omitempty"`    // of Follow: that scope contains this job and nothing else
	Visible        *sample.VisibleGPUs `json:"visible_gpus,omitempty"` // of Follow
	OnlyHeld       bool                `json:"only_held,omitempty"`    // of Follow: no ledger on other GPUs, once these are known
	OwnTime        bool                `json:"own_time,omitempty"`     // of Follow: without such a GPU, its own time is divided
	Name           *sample.JobName     `json:"name,omitempty"`         // of Follow: who the job is
	Window         *Window             `json:"window,omitempty"`       // of Begin
	window.Outcome                     // of End
	Readers        []window.Reader     `json:"readers,omitempty"`     // of End: the processes that read most
	Seen           *Seen               `json:"seen,omitempty"`        // of End: at the window's path, if Begin could not see it
	Cached         *uint64             `json:"cached,omitempty"`      // of End: bytes of the window's path in the page cache then
	Limits         *window.Limits      `json:"limits,omitempty"`      // of End: of the window's length; absent for none
	NoSchedule     string              `json:"no_schedule,omitempty"` // of End: as in window.Report, of any window
	Ceilings       []sample.Ceiling    `json:"ceilings,omitempty"`    // of Tick: measured, in place of those before; absent if unchanged
}

// JobName returns who a followed job is; zero if unknown.
func (m *Mark) JobName() sample.JobName {
	if m.Name == nil {
		return sample.JobName{}
	}
	name := *m.Name
	name.ID = m.ID
	return name
}

var (
	errLimits  = errors.New("a window's limits are negative")
	errLatency = errors.New("a histogram of latencies is impossible")
	errNothing = errors.New("it is neither a reading of a source nor a mark")
)

func checkLimits(l *window.Limits) error {
	if l == nil {
		return nil
	}
	b := cmp.Or(l.Baseline, &window.Baseline{})
	if l.Set < 0 || l.Factor < 0 || b.Median < 0 || b.P95 < 0 || b.Count < 0 {
		return errLimits
	}
	return nil
}

// check rejects an entry without content, or without a time.
func (e *Entry) check() error {
	switch {
	case e.Mark != nil && e.Sample == nil:
		return e.Mark.check()
	case e.Mark == nil && e.Sample != nil && e.Source != "":
		if slices.ContainsFunc(e.Sample.Latencies, func(l sample.Latency) bool { return !l.Valid() }) {
			return cmp.Or(checkStamp(e.Sample.At), errLatency)
		}
		return checkStamp(e.Sample.At)
	}
	return errNothing
}

func (m *Mark) check() error {
	switch m.Op {
	case Tick, Follow, Leave, Drop:
		return nil
	case Edge, Begin, End:
		if err := checkLimits(m.Limits); err != nil {
			return err
		}
		if m.At != nil && (m.Window != nil || m.Op != Begin) {
			return checkStamp(*m.At)
		}
	}
	return errNothing
}

var (
	errLong  = fmt.Errorf("a reading is longer than %d MiB", maxLine>>20)
	errMany  = fmt.Errorf("a reading has more than %d values", maxCommas)
	errStamp = errors.New("a reading has no time")
)

// checkLine applies the same bounds to both sides, so that the reader accepts what the writer wrote. The reader's
// memory grows more with the commas of a line than with its bytes.
func checkLine(text []byte) error {
	switch {
	case len(text) >= maxLine:
		return errLong
	case bytes.Count(text, []byte{','}) > maxCommas:
		return errMany
	}
	return nil
}

// checkStamp rejects times that no machine has. Telemetry counts nanoseconds since 1970, which limits the years.
func checkStamp(at sample.Stamp) error {
	if year := at.Wall.Year(); year < 1970 || year > 2261 || at.Mono < 0 {
		return errStamp
	}
	return nil
}

// Window is what a program announced when a window began.
type Window struct {
	Kind       window.Kind       `json:"kind"`
	Name       string            `json:"name,omitempty"`
	Model      string            `json:"model,omitempty"`
	Run        string            `json:"run,omitempty"`
	Path       string            `json:"path,omitempty"`
	Epoch      *int              `json:"epoch,omitempty"`
	Epochs     int               `json:"epochs,omitempty"`
	Source     window.Source     `json:"source,omitempty"`
	Owned      bool              `json:"owned,omitempty"`
	Job        string            `json:"job,omitempty"`
	PID        int               `json:"pid,omitempty"`
	ByClient   bool              `json:"by_client,omitempty"`
	GPUs       []string          `json:"gpu_ids,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Seen       *Seen             `json:"seen,omitempty"`
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

// Seen is what was at the window's path.
type Seen struct {
	Size    uint64   `json:"size,omitempty"`    // bytes of the file, or of the files of the folder
	Cached  *uint64  `json:"cached,omitempty"`  // bytes of them in the page cache; absent if unknown
	Before  uint64   `json:"before,omitempty"`  // bytes of them in it after the last load of the path; absent if unknown
	Dropped uint64   `json:"dropped,omitempty"` // bytes that the page cache lost since then, and not for lack of memory
	Layer   bool     `json:"layer,omitempty"`   // it is in a read-only layer of an overlay
	Disks   []string `json:"disks,omitempty"`   // that hold it
	Above   []string `json:"above,omitempty"`   // the devices between the path and these disks
	Device  string   `json:"device,omitempty"`  // kind of these disks, or of what replaces them
}

// maxDisks bounds the disks below one path.
const maxDisks = 64

// NewWindow returns w as a recording has it.
func NewWindow(w *window.Window) *Window {
	r := &Window{
		Kind: w.Kind, Name: w.Name, Model: w.Model, Run: w.Run, Path: w.Path, Source: w.Source, Owned: w.Owned,
		Job: w.Job, PID: w.PID, ByClient: w.ByClient, GPUs: w.GPUs, Attributes: w.Attributes, Epochs: w.Epochs,
	}
	if w.HasEpoch {
		r.Epoch = &w.Epoch
	}
	r.Confidence, r.Open, r.StartOpen, r.Unread = w.Confidence, w.Open, w.StartOpen, w.Unread
	for _, p := range w.Phases {
		r.Phases = append(r.Phases, phase(p))
	}
	r.Seen = NewSeen(&w.Seen)
	return r
}

// NewSeen returns what was at a window's path as a recording has it; nil for nothing.
func NewSeen(at *window.Seen) *Seen {
	if at.Size == 0 && len(at.Under) == 0 && at.Device == "" {
		return nil
	}
	r := &Seen{Size: at.Size, Before: at.Before, Dropped: at.Dropped, Layer: at.Layer, Disks: at.Under, Above: at.Above, Device: at.Device}
	if at.HasCached {
		r.Cached = &at.Cached
	}
	return r
}

// Window returns what the recording has; zero for nil.
func (r *Seen) Window() (at window.Seen) {
	if r == nil {
		return at
	}
	at = window.Seen{Size: r.Size, Before: r.Before, Dropped: r.Dropped, Layer: r.Layer, Device: r.Device}
	at.Under, at.Above = r.Disks[:min(len(r.Disks), maxDisks)], r.Above[:min(len(r.Above), maxDisks)]
	if r.Cached != nil {
		at.Cached, at.HasCached = *r.Cached, true
	}
	return at
}

// Window returns the window with an id.
func (r *Window) Window(id string) window.Window {
	w := window.Window{
		ID: id, Kind: r.Kind, Name: r.Name, Model: r.Model, Run: r.Run, Path: r.Path, Source: r.Source, Owned: r.Owned,
		Job: r.Job, PID: r.PID, ByClient: r.ByClient, GPUs: r.GPUs, Attributes: r.Attributes, Epochs: max(0, r.Epochs),
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
	w.Seen = r.Seen.Window()
	return w
}
