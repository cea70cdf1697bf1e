package recording

import (
	"errors"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Entry is one line after the header: a reading, or a mark. The order of entries is that in which they took effect, so
// who applies them again comes to the same reports.
type Entry struct {
	Source string         `json:"source,omitempty"` // who took the reading
	Edge   uint64         `json:"edge,omitempty"`   // the reading was taken for this edge of windows and not for the history
	Sample *sample.Sample `json:"sample,omitempty"`
	Mark   *Mark          `json:"mark,omitempty"`
}

// Op is what a Mark tells of.
type Op string

// The ops.
const (
	Tick   Op = "tick"   // a round of readings is complete
	Edge   Op = "edge"   // the readings for an edge are complete
	Follow Op = "follow" // a job is followed from now on
	Leave  Op = "leave"  // and no longer
	Begin  Op = "begin"  // a window begins at an edge
	End    Op = "end"    // and ends at one
	Drop   Op = "drop"   // or never was
)

// Mark is what happened between two readings.
type Mark struct {
	Op         Op            `json:"op"`
	Edge       uint64        `json:"edge,omitempty"`       // of Edge, Begin and End
	At         *sample.Stamp `json:"at,omitempty"`         // of Edge, Begin and End: the moment
	ID         string        `json:"id,omitempty"`         // of a window, or of a job
	Scope      string        `json:"scope,omitempty"`      // of Follow: the pressure scope in which the job waits
	OwnScope   bool          `json:"own_scope,omitempty"`  // of Follow: that scope holds this job and nothing else
	Window     *Window       `json:"window,omitempty"`     // of Begin
	Unfinished bool          `json:"unfinished,omitempty"` // of End: something else ended it
	Readers    []Fetcher     `json:"readers,omitempty"`    // of End: which processes of the machine read most meanwhile
	Limits     *Limits       `json:"limits,omitempty"`     // of End: how long the window might take; absent where nothing was set or known
	Ceilings   []Ceiling     `json:"ceilings,omitempty"`   // of Tick: what was measured of the disks, known from then on in place of what was before
}

// Ceiling is what stallspan bench had measured of a disk before.
type Ceiling struct {
	Disk      string        `json:"disk"`
	Read      float64       `json:"read"`       // bytes a second
	ReadAwait time.Duration `json:"read_await"` // of a read of 4 KiB alone
}

// Window is what is said of a window when it begins.
type Window struct {
	Kind       string            `json:"kind"`
	Name       string            `json:"name,omitempty"`
	Model      string            `json:"model,omitempty"`
	Run        string            `json:"run,omitempty"`
	Path       string            `json:"path,omitempty"`
	Epoch      *int              `json:"epoch,omitempty"`
	Source     string            `json:"source,omitempty"` // announced, span
	Owned      bool              `json:"owned,omitempty"`
	Job        string            `json:"job,omitempty"`
	PID        int               `json:"pid,omitempty"`
	GPUs       []string          `json:"gpu_ids,omitempty"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Seen       *Seen             `json:"seen,omitempty"`
}

// Seen is what lay at a window's path when it began.
type Seen struct {
	Size   uint64   `json:"size,omitempty"`   // bytes of the file, or of the files of the folder
	Cached *uint64  `json:"cached,omitempty"` // bytes of them that the page cache held; absent where that was not told
	Disks  []string `json:"disks,omitempty"`  // on which it lies
	Device string   `json:"device,omitempty"` // of which kind these are, or what stands in their place
}

// Fetcher is a process that fetched data from storage during a window.
type Fetcher struct {
	PID   int    `json:"pid"`
	Name  string `json:"name,omitempty"`   // as it calls itself
	Group string `json:"cgroup,omitempty"` // short name of its cgroup
	Bytes uint64 `json:"read_bytes"`
	Own   bool   `json:"own,omitempty"` // it belongs to the window's job
}

// Limits are by what the length of a window was judged when it ended, for that is known on its machine alone.
type Limits struct {
	Set    time.Duration `json:"set,omitempty"`    // by a person
	Factor float64       `json:"factor,omitempty"` // how many times the usual P95 it might take
	Usual  *Usual        `json:"usual,omitempty"`  // absent where too few windows like it were known
}

// Usual is how long windows like one took before it.
type Usual struct {
	Median time.Duration `json:"median"`
	P95    time.Duration `json:"p95"`
	Count  int           `json:"count"` // of windows
}

var errLimits = errors.New("a window's limits are negative")

func (l *Limits) check() error {
	if l == nil || l.Set >= 0 && l.Factor >= 0 && (l.Usual == nil || min(l.Usual.Median, l.Usual.P95) >= 0 && l.Usual.Count >= 0) {
		return nil
	}
	return errLimits
}

var errNothing = errors.New("it is neither a reading of a source nor a mark")

// check refuses what says nothing, or stands at no moment.
func (e *Entry) check() error {
	switch {
	case e.Mark != nil && e.Sample == nil:
		return e.Mark.check()
	case e.Mark == nil && e.Sample != nil && e.Source != "":
		return checkStamp(e.Sample.At)
	}
	return errNothing
}

func (m *Mark) check() error {
	switch m.Op {
	case Tick, Follow, Leave, Drop:
		return nil
	case Edge, Begin, End:
		if err := m.Limits.check(); err != nil {
			return err
		}
		if m.At != nil && (m.Window != nil || m.Op != Begin) {
			return checkStamp(*m.At)
		}
	}
	return errNothing
}
