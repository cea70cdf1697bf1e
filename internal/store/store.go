// Package store keeps the past of a machine in files: curves of its devices, windows with their findings, events, and
// the GPU time of jobs. docs/internals/store.md describes the format.
//
// A file consists of a header and blocks. Each block has its length and checksums, and files only grow. So a program
// that is killed leaves at most one block that is cut. Readers find and skip it, and the next writer removes it. One
// process writes a folder at a time, and any number may read it meanwhile.
package store

import (
	"encoding/json"
	"errors"
	"math"
	"time"
)

// Version is the version of the format. Readers refuse later ones.
const Version = 1

// Group is a set of columns that change together. Columns of jobs come and go, and those of devices stay.
type Group uint8

const (
	Devices Group = iota
	Jobs
	groups // number of groups
)

// Column says what a curve is of.
type Column struct {
	Of       Kind    `json:"of"`
	ID       string  `json:"id,omitempty"`   // of the device or job
	Name     string  `json:"name,omitempty"` // of the device or job, for people
	Quantity string  `json:"quantity"`       // with its unit: see Quantities
	Step     float64 `json:"step"`           // values are multiples of it
}

// Rows are values of the columns of a group, over intervals of the same length.
type Rows struct {
	Group   Group
	Columns []Column
	Length  time.Duration // of each interval, in whole seconds
	Starts  []int64       // of the intervals, in Unix seconds, ascending
	Values  [][]float64   // by column, then by interval; NaN where a value is not known
}

// EntryKind is what an Entry is about.
type EntryKind uint8

const (
	Window EntryKind = iota
	Event
	Times
	entryKinds // number of kinds
)

func (k EntryKind) String() string {
	return [entryKinds]string{Window: "window", Event: "event", Times: "times"}[k]
}

// Entry is a window that ended, an event, or the growth of the GPU time of one job.
type Entry struct {
	Kind   EntryKind       `json:"-"`
	At     time.Time       `json:"time"`             // the end of the window or of the growth, or the time of the event
	Client string          `json:"client,omitempty"` // whose window or job it is: see window.Window.Client
	Text   json.RawMessage `json:"text"`             // an explain.Report, an emit.EventJSON, or as package past writes it
}

// Limits of the format. Readers refuse what exceeds them.
const (
	maxPayload = 1 << 20   // bytes of a block, compressed
	maxColumns = 4096      // of a group
	maxName    = 1 << 10   // bytes of a column's text
	maxValues  = 128 << 10 // of a block
	maxEntries = 1024      // of a block
	maxText    = 64 << 10  // bytes of an entry
	maxRaw     = 4 << 20   // bytes of a block, not compressed
)

// Errors of files that are not read.
var (
	ErrForeign = errors.New("it is not a history of stallspan")
	ErrNewer   = errors.New("it was written by a later version of stallspan: use that one")
	ErrBroken  = errors.New("it has too much damage")
)

// unknown marks a value that is not known.
var unknown = math.NaN()
