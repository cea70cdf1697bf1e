package monitor

import (
	"fmt"

	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// journal writes down what happens while m.mu is held, so that its order is the order in which things took effect.
type journal struct {
	to       Journal // nil where nothing is to be written, or where it failed
	problems *problems
	edges    uint64 // numbered so far
}

func (j *journal) write(e *recording.Entry) {
	if j.to == nil {
		return
	}
	if err := j.to.Write(e); err != nil {
		j.problems.note("recording", fmt.Errorf("it ends here: %w", err))
		j.to = nil
	}
}

// reading writes a reading down: of the history, or of the edge of that number.
func (j *journal) reading(source string, edge uint64, s *sample.Sample) {
	if j.to != nil {
		j.write(&recording.Entry{Source: source, Edge: edge, Sample: s})
	}
}

func (j *journal) mark(m recording.Mark) {
	if j.to != nil {
		kept := m // a copy, so that m itself costs no memory where nothing is written
		j.write(&recording.Entry{Mark: &kept})
	}
}

// edge numbers a new edge; 0 stands for none.
func (j *journal) edge() uint64 {
	j.edges++
	return j.edges
}

func recorded(w *window.Window) *recording.Window {
	r := &recording.Window{
		Kind: string(w.Kind), Name: w.Name, Model: w.Model, Run: w.Run, Path: w.Path, Source: string(w.Source),
		Owned: w.Owned, Job: w.Job, PID: w.PID, GPUs: w.GPUs, Attributes: w.Attributes, Seen: seenNow(&w.Seen),
	}
	if w.HasEpoch {
		r.Epoch = &w.Epoch
	}
	return r
}

func replayed(id string, r *recording.Window) window.Window {
	w := window.Window{
		ID: id, Kind: window.Kind(r.Kind), Name: r.Name, Model: r.Model, Run: r.Run, Path: r.Path, Source: window.Source(r.Source),
		Owned: r.Owned, Job: r.Job, PID: r.PID, GPUs: r.GPUs, Attributes: r.Attributes, Seen: seenBefore(r.Seen),
	}
	if r.Epoch != nil {
		w.Epoch, w.HasEpoch = *r.Epoch, true
	}
	return w
}
