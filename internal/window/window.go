// Package window judges intervals of time: a model load, an epoch, a checkpoint. A report divides the time of each GPU
// into a ledger that adds up, draws a verdict from it, and states what is missing. Package explain makes words from it.
package window

import (
	"regexp"
	"slices"
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
	Steps      Kind = "steps"  // some steps of a loop, as of stallspan.watch in Python
	Custom     Kind = "custom" // identified by its Name
)

// KindChoices are all kinds in words.
const KindChoices = "model_load, epoch, checkpoint, steps or custom"

// KindNames returns all kinds.
func KindNames() []string {
	return []string{string(ModelLoad), string(Epoch), string(Checkpoint), string(Steps), string(Custom)}
}

// Valid reports whether k is one of the kinds.
func (k Kind) Valid() bool { return slices.Contains(KindNames(), string(k)) }

// Source is how a window became known.
type Source string

const (
	Announced Source = "announced" // through the API, or detected in the program's output
	FromSpan  Source = "span"      // an OTLP span that passed through the processor
	Detected  Source = "detected"  // from the outside, by what the job did: see package detect
)

// Scope is the processes that a window's ledger accounts for.
type Scope string

const (
	Host      Scope = "host"      // everything on this machine
	Process   Scope = "process"   // a process and its descendants
	Container Scope = "container" // a container's processes
)

// Window is an interval and its meaning. Start and End have exact readings if it was announced.
type Window struct {
	ID     string
	Kind   Kind
	Name   string // of a window of another kind than epoch and model load; may be empty
	Model  string // of a load
	Run    string // the training run or wrapped program that it belongs to
	Path   string // the file or folder that it reads, if known
	Epoch  int    // as the program counts, if HasEpoch
	Epochs int    // how many it stands for: 10 of a program that prints each tenth; 0 and 1 are one
	Source Source

	HasEpoch bool
	First    bool // the first epoch of its run and job that began here, or the first for an hour
	Owned    bool // its owner runs in this program and will end it, however long it takes

	Outcome

	// ApproximateBounds: the window began or ended with the program and not by a line of its own, so that it contains time
	// of something else.
	ApproximateBounds bool

	Within     string   // id of the epoch of the same program that it is a part of; "" for none
	Job        string   // the job that it accounts for; "" for the whole machine
	PID        int      // the job's first process
	Client     string   // the user or container that announced it; "" for this program itself
	ByClient   bool     // PID is the client that announced the window and named no process: it may be curl
	GPUs       []string // hw.id of its GPUs; empty for all of this machine's
	Attributes map[string]string
	Seen       Seen             // at Path, when it began
	Ceilings   []sample.Ceiling // when it began

	Confidence float64       // of a detected window, 0 to 1
	Open       time.Duration // how much the times of its start and end leave open, both together
	StartOpen  time.Duration // that of its start alone
	Unread     time.Duration // after its start, in which its job had no reading yet: it is divided as the rest
	Phases     []Phase       // of a detected load, in the order of their starts; they may overlap

	Start, End         sample.Stamp
	StartEdge, EndEdge *history.Edge

	// Next is a reading after End, for a window without edges that ended just now.
	Next *history.Next
}

// Outcome is how a window ended. The zero value is by itself.
type Outcome struct {
	Unfinished bool   `json:"unfinished,omitempty"` // by something else: the program's exit, or a limit
	Ended      string `json:"ended,omitempty"`      // by what, in words that follow "ended with"; "" if that is unknown
	Failed     bool   `json:"failed,omitempty"`     // it went wrong, and was not stopped on purpose
}

// Phase is a part of a load that the evidence shows. Times are monotonic.
type Phase struct {
	Name       string // one of the registry's stallspan.load.phase
	Start, End time.Duration
	Bytes      uint64 // that it moved; 0 if unknown
}

// Duration returns the length of a phase.
func (p *Phase) Duration() time.Duration { return p.End - p.Start }

// Duration is measured on the monotonic clock: a step of the wall clock does not change it.
func (w *Window) Duration() time.Duration { return w.End.Mono - w.Start.Mono }

// Label is the window's name for people.
func (w *Window) Label() string {
	switch {
	case w.Kind == Epoch && w.HasEpoch:
		return "epoch " + strconv.Itoa(w.Epoch)
	case w.Kind == ModelLoad && w.Model != "":
		return "load " + w.Model
	case w.Kind == ModelLoad:
		return "load"
	case w.Name != "":
		return ShownName(w.Name)
	default:
		return string(w.Kind)
	}
}

// ofCode is a name that identity.NameOf makes of code on a command line: "python -c d287bb7f".
var ofCode = regexp.MustCompile(`^([A-Za-z]+ -[A-Za-z]*[ce]) [0-9a-f]{8}$`)

// ShownName is the name of a program for people. Code on a command line may hold secrets, and the hash that keeps the
// baselines of two such programs apart says nothing: only "python -c" is shown.
func ShownName(name string) string {
	if m := ofCode.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return name
}

func (w *Window) from() history.Point {
	return history.Point{At: w.Start.Mono, Edge: w.StartEdge, Next: w.Next}
}

func (w *Window) to() history.Point {
	return history.Point{At: w.End.Mono, Edge: w.EndEdge, Next: w.Next}
}
