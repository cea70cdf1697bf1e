// Package store keeps the past of a machine in files: curves of its devices, windows with their findings, events, and
// the GPU time of jobs. docs/internals/store.md has its rules.
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
	Lane   string          `json:"-"`                // whose room it takes in a Writer: see trust.Queue
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

// Kind is what a column is of.
type Kind string

const (
	Machine Kind = "machine"
	GPU     Kind = "gpu"
	Disk    Kind = "disk"
	Job     Kind = "job"
)

// Quantity is something of a kind that has a curve. A curve is of means, except those that say otherwise.
type Quantity struct {
	Of   Kind
	Name string  // with its unit, as in JSON
	Step float64 // values are stored as multiples of it
	Fold Fold    // how longer intervals are made
	By   string  // of a weighted mean: the quantity of the weights
}

// Fold is how the value of a longer interval follows from those of shorter ones.
type Fold uint8

const (
	Mean Fold = iota
	Min
	Max
	WeightedMean
)

// Names of quantities. Ratios are from 0 to 1.
const (
	Cores       = "busy_cores" // core-seconds of work, per second
	BusiestCore = "busiest_core_ratio"
	IOSome      = "io_some_ratio" // pressure
	IOFull      = "io_full_ratio"

	Busy          = "busy_ratio"
	BusyMin       = "busy_min_ratio"
	BusyMax       = "busy_max_ratio"
	SMActive      = "sm_active_ratio"
	TensorActive  = "tensor_active_ratio"
	Power         = "power_watts"
	PowerMax      = "power_max_watts"
	Temperature   = "temperature_celsius"
	MemoryUsed    = "memory_used_bytes"
	SMClock       = "sm_clock_hz"
	Throttled     = "throttled_ratio" // the sum over all reasons
	ReadBytes     = "read_bytes_per_s"
	ReadBytesMax  = "read_bytes_max_per_s"
	WriteBytes    = "write_bytes_per_s"
	WriteBytesMax = "write_bytes_max_per_s"
	Reads         = "reads_per_s"
	Writes        = "writes_per_s"
	ReadAwait     = "read_await_s"
	ReadAwaitMax  = "read_await_max_s"
	WriteAwait    = "write_await_s"
	WriteAwaitMax = "write_await_max_s"
	Queue         = "queue_depth"
	QueueMax      = "queue_depth_max"
	Utilization   = "utilization_ratio"

	Storage = "storage_ratio" // parts of the ledger of a job, or of the whole machine
	CPU     = "cpu_ratio"
	NoCore  = "no_core_ratio" // of a job, part of CPU: ready for a core, and without one
)

const (
	thousandth = 1e-3
	kilobyte   = 1e3
)

// Quantities are all that are written, in the order of columns for people.
var Quantities = []Quantity{
	{Of: Machine, Name: Cores, Step: thousandth},
	{Of: Machine, Name: BusiestCore, Step: thousandth},
	{Of: Machine, Name: IOSome, Step: thousandth},
	{Of: Machine, Name: IOFull, Step: thousandth},
	{Of: Machine, Name: Storage, Step: thousandth},
	{Of: Machine, Name: CPU, Step: thousandth},
	{Of: GPU, Name: Busy, Step: thousandth},
	{Of: GPU, Name: BusyMin, Step: thousandth, Fold: Min},
	{Of: GPU, Name: BusyMax, Step: thousandth, Fold: Max},
	{Of: GPU, Name: SMActive, Step: thousandth},
	{Of: GPU, Name: TensorActive, Step: thousandth},
	{Of: GPU, Name: Power, Step: 0.1},
	{Of: GPU, Name: PowerMax, Step: 1, Fold: Max},
	{Of: GPU, Name: Temperature, Step: 0.1},
	{Of: GPU, Name: MemoryUsed, Step: 1 << 20},
	{Of: GPU, Name: SMClock, Step: 1e6},
	{Of: GPU, Name: Throttled, Step: thousandth},
	{Of: Disk, Name: ReadBytes, Step: kilobyte},
	{Of: Disk, Name: ReadBytesMax, Step: 1e2 * kilobyte, Fold: Max},
	{Of: Disk, Name: WriteBytes, Step: kilobyte},
	{Of: Disk, Name: WriteBytesMax, Step: 1e2 * kilobyte, Fold: Max},
	{Of: Disk, Name: Reads, Step: 0.1},
	{Of: Disk, Name: Writes, Step: 0.1},
	{Of: Disk, Name: ReadAwait, Step: 1e-6, Fold: WeightedMean, By: Reads},
	{Of: Disk, Name: ReadAwaitMax, Step: 1e-5, Fold: Max},
	{Of: Disk, Name: WriteAwait, Step: 1e-6, Fold: WeightedMean, By: Writes},
	{Of: Disk, Name: WriteAwaitMax, Step: 1e-5, Fold: Max},
	{Of: Disk, Name: Queue, Step: 0.01},
	{Of: Disk, Name: QueueMax, Step: 0.1, Fold: Max},
	{Of: Disk, Name: Utilization, Step: thousandth},
	{Of: Job, Name: Busy, Step: thousandth},
	{Of: Job, Name: Storage, Step: thousandth},
	{Of: Job, Name: CPU, Step: thousandth},
	{Of: Job, Name: NoCore, Step: thousandth},
	{Of: Job, Name: Cores, Step: thousandth},
	{Of: Job, Name: ReadBytes, Step: kilobyte},
	{Of: Job, Name: WriteBytes, Step: kilobyte},
}
