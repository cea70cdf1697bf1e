package agent

import (
	"context"
	"fmt"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
)

// recorder is the recording of a command that may make one.
type recorder struct {
	path     string // empty without a recording
	rotation recording.Rotation
	file     *recording.Parts // nil before open, and without a recording
}

// open creates the recording before anything else begins, so that a wrong path is found at once.
func (r *recorder) open() (err error) {
	if r.path == "" {
		return nil
	}
	h := recording.ThisMachine(monitor.Boot(""), config.DefaultInterval, version())
	r.file, err = recording.Create(r.path, h, r.rotation, func(err error) { say("%v", err) })
	return err
}

// journal is the monitor's output to the recording.
func (r *recorder) journal() monitor.Journal {
	if r.file == nil {
		return nil
	}
	return r.file
}

// close completes the recording. The error is why it is incomplete. Later calls have no effect.
func (r *recorder) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// summary is the recording's path and size.
func (r *recorder) summary() string {
	bytes, parts := r.file.Size()
	if parts > 1 {
		return fmt.Sprintf("recorded %s in %d parts to %s", sizeText(bytes), parts, r.path)
	}
	return fmt.Sprintf("recorded %s to %s", sizeText(bytes), r.path)
}

// endOnError ends the command when the journal cannot be written.
type endOnError struct {
	monitor.Journal
	end context.CancelFunc
}

func (j endOnError) Write(e *recording.Entry) error {
	err := j.Journal.Write(e)
	if err != nil {
		j.end()
	}
	return err
}
