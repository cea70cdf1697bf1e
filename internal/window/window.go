// Package window says what happened inside a stretch of time that a person cares about: a model load, an epoch, a
// checkpoint. It splits the time of each GPU into a ledger that adds up, and draws a verdict from it.
package window

import (
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/sample"
)

// Kind is what a window stands for.
type Kind string

const (
	ModelLoad  Kind = "model_load"
	Epoch      Kind = "epoch"
	Checkpoint Kind = "checkpoint"
	Custom     Kind = "custom" // told apart by its Name
)

// Valid says whether k is one of the kinds.
func (k Kind) Valid() bool {
	switch k {
	case ModelLoad, Epoch, Checkpoint, Custom:
		return true
	}
	return false
}

// Source is how a window came to be known.
type Source string

const (
	Announced Source = "announced" // through the API, or read off the program's output
	FromSpan  Source = "span"      // an OTLP span on its way through the processor
)

// Scope says whose time a window splits, as far as that is known.
type Scope string

const (
	Host      Scope = "host"      // everything on this machine
	Process   Scope = "process"   // a process and those that it started
	Container Scope = "container" // a container's processes
)

// Window is a stretch of time and what it was about. Start and End carry exact readings where it was announced.
type Window struct {
	ID     string
	Kind   Kind
	Name   string // of a custom window; may be empty
	Model  string // of a load
	Run    string // the training run or wrapped program that it belongs to
	Path   string // the file or folder that it reads, where that was told
	Epoch  int    // as the program counts, where HasEpoch
	Source Source

	HasEpoch          bool
	Owned             bool // whoever began it lives as long as this program and will end it, however long that takes
	Unfinished        bool // ended by something other than its own end: the program's exit, or a limit
	ApproximateBounds bool // it began or ended with the program and not by a line of its own, and holds what is no part of it

	Job        string   // the job whose time it is; "" for the whole machine
	PID        int      // the job's first process
	GPUs       []string // hw.id of those it concerns; empty for all of this machine's
	Attributes map[string]string
	Seen       Seen             // at Path, when it began
	Ceilings   []sample.Ceiling // as they were learned when it began

	Start, End         sample.Stamp
	StartEdge, EndEdge *history.Edge

	// Next is a reading later than End, of a window without edges that ended just now.
	Next *history.Next
}

// Duration is measured on the monotonic clock, so a step of the wall clock does not bend it.
func (w *Window) Duration() time.Duration { return w.End.Mono - w.Start.Mono }

// Label is what a person would call the window.
func (w *Window) Label() string {
	switch {
	case w.Kind == Epoch && w.HasEpoch:
		return "epoch " + strconv.Itoa(w.Epoch)
	case w.Kind == ModelLoad && w.Model != "":
		return "load " + w.Model
	case w.Kind == ModelLoad:
		return "load"
	case w.Name != "":
		return w.Name
	default:
		return string(w.Kind)
	}
}

func (w *Window) from() history.Point {
	return history.Point{At: w.Start.Mono, Edge: w.StartEdge, Next: w.Next}
}

func (w *Window) to() history.Point {
	return history.Point{At: w.End.Mono, Edge: w.EndEdge, Next: w.Next}
}
