package sampling

import (
	"fmt"

	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
)

// journal writes entries in the order in which they take effect.
type journal struct {
	to       Journal // nil for none, and after an error
	problems *Problems
	edges    uint64 // numbered so far, from 1: 0 stands for no edge
}

func (j *journal) write(e *recording.Entry) {
	if j.to == nil {
		return
	}
	if err := j.to.Write(e); err != nil {
		j.problems.Note("recording", fmt.Errorf("it ends here: %w", err))
		j.to = nil
	}
}

// reading writes a reading of the history, or of the edge with that number.
func (j *journal) reading(source string, edge uint64, s *sample.Sample) {
	if j.to != nil {
		j.write(&recording.Entry{Source: source, Edge: edge, Sample: s})
	}
}

func (j *journal) mark(m recording.Mark) {
	if j.to != nil {
		kept := m // a copy, so that m itself is not allocated when nothing is written
		j.write(&recording.Entry{Mark: &kept})
	}
}
