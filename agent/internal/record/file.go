package record

import (
	"context"
	"fmt"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/version"
	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
)

// Recorder is the recording of a command that may make one.
type Recorder struct {
	Path     string // empty without a recording
	Rotation recording.Rotation
	file     *recording.Parts // nil before open, and without a recording
}

// Open creates the recording before anything else begins, so that a wrong path is found at once.
func (r *Recorder) Open() (err error) {
	if r.Path == "" {
		return nil
	}
	h := recording.ThisMachine(monitor.Boot(""), config.DefaultInterval, version.Number())
	r.file, err = recording.Create(r.Path, h, r.Rotation, func(err error) { cli.Say("%v", err) })
	return err
}

// Journal is the monitor's output to the recording.
func (r *Recorder) Journal() monitor.Journal {
	if r.file == nil {
		return nil
	}
	return r.file
}

// Close completes the recording. The error is why it is incomplete. Later calls have no effect.
func (r *Recorder) Close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// summary is the recording's path and size.
func (r *Recorder) summary() string {
	bytes, parts := r.file.Size()
	if parts > 1 {
		return fmt.Sprintf("recorded %s in %d parts to %s", explain.Size(uint64(bytes)), parts, r.Path)
	}
	return fmt.Sprintf("recorded %s to %s", explain.Size(uint64(bytes)), r.Path)
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
