package loads

import (
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/source/modelfile"
)

// handle is a file descriptor of a process.
type handle struct{ pid, fd int }

// position is that of a file descriptor in a look.
type position struct {
	at   int64
	seen time.Duration
}

// file is a file of a model.
type file struct {
	path    string
	size    int64
	parts   int
	handles map[handle]position   // open for reading
	writers map[handle]position   // open for writing
	mapped  map[int]time.Duration // by process that has mapped it, the last look that saw it
	seen    time.Duration         // the last look that saw it open or mapped
	since   interval              // in which it was opened
	closed  interval              // in which it was closed
	written interval              // by this job
	moved   float64               // bytes by which its positions moved in this look
	done    bool                  // a load of it has ended, and it was not opened again since
	passes  int                   // how often a position went back, or it was opened again, in this transfer
	high    int64                 // the highest position that was seen in this transfer
}

func (f *file) active() bool { return len(f.handles) > 0 || len(f.mapped) > 0 }

// isWeights reports whether a file may be one with weights.
func isWeights(name string, size int64) bool {
	if modelfile.IsBlob(name) {
		return size >= minBlob
	}
	return modelfile.Is(name) && size >= minSize
}

// isMapped reports whether a file of a look is a mapped blob with weights: vocabularies are read, and not mapped.
func isMapped(x *detect.File) bool {
	return x.Mapped > 0 && x.Size >= minSize && modelfile.IsBlob(x.Path)
}
