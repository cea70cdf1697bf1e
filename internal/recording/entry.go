package recording

import (
	"cmp"
	"errors"

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
	Op         Op                  `json:"op"`
	Edge       uint64              `json:"edge,omitempty"`         // of Edge, Begin and End
	At         *sample.Stamp       `json:"at,omitempty"`           // of Edge, Begin and End: the moment
	ID         string              `json:"id,omitempty"`           // of a window, or of a job
	Scope      string              `json:"scope,omitempty"`        // of Follow: the pressure scope of the job
	OwnScope   bool                `json:"own_scope,omitempty"`    // of Follow: that scope contains this job and nothing else
	Visible    *sample.VisibleGPUs `json:"visible_gpus,omitempty"` // of Follow
	OnlyHeld   bool                `json:"only_held,omitempty"`    // of Follow: no ledger on other GPUs, once these are known
	OwnTime    bool                `json:"own_time,omitempty"`     // of Follow: without such a GPU, its own time is divided
	Name       *sample.JobName     `json:"name,omitempty"`         // of Follow: who the job is
	Window     *Window             `json:"window,omitempty"`       // of Begin
	Unfinished bool                `json:"unfinished,omitempty"`   // of End: the window did not end by itself
	Readers    []window.Reader     `json:"readers,omitempty"`      // of End: the processes that read most
	Cached     *uint64             `json:"cached,omitempty"`       // of End: bytes of the window's path in the page cache then
	Limits     *window.Limits      `json:"limits,omitempty"`       // of End: of the window's length; absent for none
	NoSchedule string              `json:"no_schedule,omitempty"`  // of End: as in window.Report, of any window
	Ceilings   []sample.Ceiling    `json:"ceilings,omitempty"`     // of Tick: measured, in place of those before; absent if unchanged
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

var errLimits = errors.New("a window's limits are negative")

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

var errLatency = errors.New("a histogram of latencies is impossible")

func checkLatencies(list []sample.Latency) error {
	for i := range list {
		if !list[i].Valid() {
			return errLatency
		}
	}
	return nil
}

var errNothing = errors.New("it is neither a reading of a source nor a mark")

// check rejects an entry without content, or without a time.
func (e *Entry) check() error {
	switch {
	case e.Mark != nil && e.Sample == nil:
		return e.Mark.check()
	case e.Mark == nil && e.Sample != nil && e.Source != "":
		return cmp.Or(checkStamp(e.Sample.At), checkLatencies(e.Sample.Latencies))
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
