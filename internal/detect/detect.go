// Package detect has what detectors of windows have in common: the facts that they get, and what they find. A detector
// looks at a job from the outside, and finds windows that no program announced. It reads nothing itself, so that tests
// can give it the facts of any job.
package detect

import (
	"time"

	"github.com/stallspan/stallspan/internal/window"
)

// Found is a window that a detector found. It has ended, or its job or the agent has.
type Found struct {
	Kind       window.Kind
	Name       string // of a window of another kind than model load; may be empty
	Job        string
	PID        int    // the process that did most of it
	Owner      string // whose the process is, as window.Window.Client; set by who looks at the job, as is the next
	Parent     int    // of the job's first process; 0 if unknown
	Path       string // of the file or folder that it read or wrote; "" if unknown
	Model      string // of a load; "" if unknown
	Unfinished bool   // it was going on when its job or the agent ended

	Start, End time.Duration // on the monotonic clock, as sample.Stamp.Mono

	// StartOpen and EndOpen are the lengths of the intervals that hold the start and the end: what the facts leave open.
	StartOpen, EndOpen time.Duration

	Confidence float64 // that this is such a window, 0 to 1
	Bytes      uint64  // that it read or wrote; 0 if unknown
	Phases     []Phase // in the order of their starts, within Start and End
}

// Phase is a part of a window with a name of the registry: stallspan.window.phase.
type Phase struct {
	Name       string
	Start, End time.Duration
	Bytes      uint64 // that it moved; 0 if unknown
}

// precise lists the kinds of windows that detectors find with a precision of 0.95, as measured on jobs with labels that
// nothing was tuned with. Baselines learn from detected windows of these kinds, and judge them.
var precise = map[window.Kind]bool{window.ModelLoad: true}

// Precise reports whether baselines may learn from detected windows of a kind.
func Precise(k window.Kind) bool { return precise[k] }

// Detector finds windows of one job. It is called from one goroutine.
type Detector interface {
	// Look takes the facts of a look, and returns what has ended since the look before.
	Look(f *Facts) []Found
	// Close returns what the end of the job ends.
	Close(f *Facts) []Found
	// Busy reports whether something may be going on that a look in a second would see too late: then there are ten looks
	// a second, as long as there is room for that.
	Busy() bool
}

// New makes a detector for one job.
type New func(job string) Detector

// Facts are what a look at a job saw. Slices and the Past are valid until the look returns.
type Facts struct {
	Job  string
	At   time.Duration // of the look, on the monotonic clock
	Last time.Duration // of the look before; of the job's first reading for the first one

	Processes []Process
	Files     []File // open or mapped, those with data only: no folders, sockets, pipes, devices

	GPUMemory uint64 // bytes in use on the GPUs that its processes hold memory of
	// GPUMemoryAt is when that was read; 0 if it is only known that it was within the last second.
	GPUMemoryAt time.Duration
	HasGPU      bool // it holds memory of a GPU, or has done so
	Listening   int  // TCP sockets on which it accepts connections; -1 in a look that did not ask

	Stopping bool // of Detector.Close: the agent stops, and the job goes on

	Past Past
}

// Process is a living process of the job.
type Process struct {
	PID      int
	Started  time.Duration // on the monotonic clock
	Denied   bool          // its files may not be read
	Memory   int64         // bytes of files that its address space has in memory; 0 if unknown
	Resident int64         // bytes that it has in memory; 0 if unknown
	Drives   bool          // it holds memory of a GPU, as the driver listed last

	// At is the look that its files are from: not each look asks all processes. Last is up to when it is known what was
	// open before. Both are 0 where nothing is known.
	Last, At time.Duration

	// MapsLast is when its mappings were listed before the newest list, which is made more rarely; 0 if it is not known.
	MapsLast time.Duration
}

// File is an open or mapped file of a process.
type File struct {
	PID    int
	FD     int // -1 for a mapped file that is not open
	Path   string
	Size   int64
	Offset int64 // the file position, if FD >= 0
	Write  bool  // it is open for writing

	Mapped int64 // bytes of the mappings of the process
}

// Quantity is a cumulative counter of a job.
type Quantity int

// The quantities.
const (
	ReadBytes  Quantity = iota // fetched from storage
	ReadChars                  // returned by read calls
	WriteBytes                 // bytes written
	GPUBusy                    // s, the sum of the GPUs that the job holds memory of
)

// Past is what the history has of the job.
type Past interface {
	// Level returns a quantity at a moment, interpolated between readings, which are a tenth of a second apart for at
	// least the last minute. It returns false where nothing is known.
	Level(q Quantity, at time.Duration) (float64, bool)
	// Reading returns the newest moment of a reading of a quantity.
	Reading(q Quantity) (time.Duration, bool)
}
