package recording

import (
	"errors"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
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
	Op         Op               `json:"op"`
	Edge       uint64           `json:"edge,omitempty"`       // of Edge, Begin and End
	At         *sample.Stamp    `json:"at,omitempty"`         // of Edge, Begin and End: the moment
	ID         string           `json:"id,omitempty"`         // of a window, or of a job
	Scope      string           `json:"scope,omitempty"`      // of Follow: the pressure scope in which the job waits
	OwnScope   bool             `json:"own_scope,omitempty"`  // of Follow: that scope holds this job and nothing else
	Window     *Window          `json:"window,omitempty"`     // of Begin
	Unfinished bool             `json:"unfinished,omitempty"` // of End: something else ended it
	Readers    []window.Reader  `json:"readers,omitempty"`    // of End: which processes of the machine read most meanwhile
	Limits     *window.Limits   `json:"limits,omitempty"`     // of End: how long the window might take; absent where nothing was set or known
	Ceilings   []sample.Ceiling `json:"ceilings,omitempty"`   // of Tick: what was measured of the disks, known from then on in place of what was before
}

var errLimits = errors.New("a window's limits are negative")

func checkLimits(l *window.Limits) error {
	if l == nil || l.Set >= 0 && l.Factor >= 0 && (l.Baseline == nil || min(l.Baseline.Median, l.Baseline.P95) >= 0 && l.Baseline.Count >= 0) {
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
		if err := checkLimits(m.Limits); err != nil {
			return err
		}
		if m.At != nil && (m.Window != nil || m.Op != Begin) {
			return checkStamp(*m.At)
		}
	}
	return errNothing
}
