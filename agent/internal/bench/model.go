package bench

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Bounds of ModelOptions.
const (
	DefaultReaders = 8
	maxReaders     = 256
)

// ModelOptions select a model and how to measure reading it.
type ModelOptions struct {
	Path      string        // a file, or a folder with files of weights
	Readers   int           // of the ways with several readers; 0 for DefaultReaders
	Step      time.Duration // the longest duration of each way; 0 for 2.5 s
	KeepCache bool          // leave the page cache as it is: storage is read with O_DIRECT only
	Before    func() error  // called when the model is open, before it is read: an error ends the measurement; may be nil
}

// Check returns an error if the options are out of bounds, and fills in defaults.
func (o *ModelOptions) Check() error {
	o.Step, o.Readers = cmp.Or(o.Step, defaultStep), cmp.Or(o.Readers, DefaultReaders)
	switch {
	case o.Path == "":
		return errors.New("no model given: name a file or folder")
	case o.Readers < 2 || o.Readers > maxReaders:
		return fmt.Errorf("%d readers cannot be compared with one: choose 2 to %d", o.Readers, maxReaders)
	}
	return checkStep(o.Step)
}

// How is the system call with which a way reads.
type How string

const (
	Read   How = "read"   // read(2), through the page cache, with the kernel's read-ahead
	Mapped How = "mmap"   // by page faults in a mapping, as safetensors does
	Direct How = "direct" // O_DIRECT, without the page cache
)

// Way is one way to read the model, and how fast it was.
type Way struct {
	How     How     `json:"how"`
	Cached  bool    `json:"from_page_cache"` // all that it read was in the page cache
	Readers int     `json:"readers"`         // threads; each waits for one read of 1 MiB
	Bytes   uint64  `json:"bytes"`           // that it read
	Rate    float64 `json:"bytes_per_second"`
	Load    float64 `json:"load_s"` // for the whole model at this rate
}

// ModelResult is the measurement of a model.
type ModelResult struct {
	Path       string  `json:"path"`
	Files      int     `json:"files"`
	Size       uint64  `json:"size_bytes"`       // of the files together
	InCache    *uint64 `json:"cached_bytes"`     // of them in the page cache before; null if unknown
	FileSystem string  `json:"file_system"`      // its type and, where data is elsewhere, its source
	Device     string  `json:"device,omitempty"` // the disk, if it is a single one of this machine
	Ways       []Way   `json:"ways"`             // in the order of the table
	ending
}

// Reachable returns the fastest way that reads storage, or nil.
func (r *ModelResult) Reachable() *Way { return r.fastest(func(w *Way) bool { return !w.Cached }) }

// Of returns the way of a kind with one reader or with several, or nil.
func (r *ModelResult) Of(how How, cached, several bool) *Way {
	return r.fastest(func(w *Way) bool { return w.How == how && w.Cached == cached && (w.Readers > 1) == several })
}

func (r *ModelResult) fastest(fits func(*Way) bool) (best *Way) {
	for i := range r.Ways {
		if w := &r.Ways[i]; fits(w) && (best == nil || w.Rate > best.Rate) {
			best = w
		}
	}
	return best
}
