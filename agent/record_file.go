package agent

import (
	"context"
	"fmt"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
)

// recorder is the recording of a command that may make one.
type recorder struct {
	path     string // empty where nothing is recorded
	rotation recording.Rotation
	file     *recording.Parts // nil until open, and where nothing is recorded
}

// open begins the recording before anything is watched, so that a wrong path costs nothing else.
func (r *recorder) open() (err error) {
	if r.path == "" {
		return nil
	}
	h := recording.ThisMachine(monitor.Boot(""), monitor.DefaultInterval, version())
	r.file, err = recording.Create(r.path, h, r.rotation, func(err error) { say("%v", err) })
	return err
}

// journal is what the monitor tells.
func (r *recorder) journal() monitor.Journal {
	if r.file == nil {
		return nil
	}
	return r.file
}

// close completes the recording; the error says why it is not whole. It may be called again.
func (r *recorder) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}

// summary says where the recording is and how large it is.
func (r *recorder) summary() string {
	bytes, parts := r.file.Size()
	if parts > 1 {
		return fmt.Sprintf("recorded %s in %d parts to %s", sizeText(bytes), parts, r.path)
	}
	return fmt.Sprintf("recorded %s to %s", sizeText(bytes), r.path)
}

// ending is the journal of a command that has nothing to do once it cannot be written.
type ending struct {
	monitor.Journal
	end context.CancelFunc
}

func (j ending) Write(e *recording.Entry) error {
	err := j.Journal.Write(e)
	if err != nil {
		j.end()
	}
	return err
}

// sayAll says what went wrong, and gives the exit code for it.
func sayAll(errs ...error) (failed error) {
	for _, err := range errs {
		if err != nil {
			say("%v", err)
			failed = exit(exitFailed)
		}
	}
	return failed
}
