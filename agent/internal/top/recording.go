package top

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
)

// Recording makes frames of a recording. It is not safe for concurrent use.
type Recording struct {
	monitor *monitor.Monitor
	builder builder
	next    Entries
	step    time.Duration // of the recording's time, between two frames

	jobs   []*watched
	labels map[string]string // of jobs, from their windows
	at     sample.Stamp      // of the newest reading
	due    time.Duration     // Stamp.Mono of the next frame
	begun  bool
	gap    error // why it ends early
}

// Entries returns the entries of a recording one after the other, and io.EOF after the last one.
type Entries func(*recording.Entry) error

// NewRecording prepares the frames of a recording. m is a monitor with Config.Recorded.
func NewRecording(m *monitor.Monitor, host string, step time.Duration, next Entries) *Recording {
	r := &Recording{monitor: m, next: next, step: step, labels: map[string]string{}}
	r.builder = builder{monitor: m, host: host, name: func(int) string { return "" },
		parent: func(int) int { return 0 }}
	return r
}

// Next returns the next frame. The error is io.EOF after the last one.
func (r *Recording) Next() (*Frame, error) {
	var e recording.Entry
	for {
		switch err := r.next(&e); {
		case errors.Is(err, io.EOF):
			return r.last(io.EOF)
		case err != nil:
			r.gap = err
			return r.last(err)
		}
		if e.Mark != nil {
			r.before(e.Mark)
		}
		_ = r.monitor.Feed(&e) // the end of a window that began before the recording, or a kind of a newer version
		if e.Mark == nil {
			if at := e.Sample.At; at.Mono > r.at.Mono {
				r.at = at
			}
			continue
		}
		r.after(e.Mark)
		if e.Mark.Op == recording.Tick {
			if f := r.tick(); f != nil {
				return f, nil
			}
		}
	}
}

// last returns the frame of the recording's end, once.
func (r *Recording) last(err error) (*Frame, error) {
	r.next = func(*recording.Entry) error { return err }
	if r.begun && r.at.Mono > r.due-r.step {
		r.begun = false
		return r.frame(), nil
	}
	return nil, err
}

// tick returns a frame if one is due.
func (r *Recording) tick() *Frame {
	if !r.begun {
		r.begun, r.due = true, r.at.Mono+r.step
		r.builder.frame(nil) // what the first interval begins with
		return nil
	}
	if r.at.Mono < r.due {
		return nil
	}
	r.due = max(r.due+r.step, r.at.Mono)
	return r.frame()
}

// before notes what a mark takes away.
func (r *Recording) before(m *recording.Mark) {
	if m.Op != recording.Leave {
		return
	}
	for _, j := range r.jobs {
		if j.id == m.ID && !j.ended {
			now := r.monitor.Collect()
			r.builder.job(j, &now)
			j.ended = true
		}
	}
}

// after notes what a mark has added.
func (r *Recording) after(m *recording.Mark) {
	switch m.Op {
	case recording.Follow:
		r.jobs = append(r.jobs, &watched{id: m.ID, name: r.nameOf(m.ID)})
		if over := len(r.jobs) - maxFollowed; over > 0 {
			r.jobs = slices.Delete(r.jobs, 0, over)
		}
	case recording.Tick:
		for _, j := range r.jobs {
			if j.since.Mono == 0 {
				j.since = r.at
			}
		}
	case recording.Begin:
		w := m.Window
		if w == nil || w.Job == "" || w.Run == "" {
			return
		}
		r.labels[w.Job] = w.Run
		for _, j := range r.jobs {
			if j.id == w.Job {
				j.name, j.pid = w.Run, cmp.Or(w.PID, j.pid)
			}
		}
	}
}

// maxFollowed bounds the jobs that are kept of a recording: as many as an agent follows.
const maxFollowed = 80

func (r *Recording) nameOf(id string) string {
	if name := r.labels[id]; name != "" {
		return name
	}
	return id
}

func (r *Recording) frame() *Frame {
	r.jobs = slices.DeleteFunc(r.jobs, func(j *watched) bool {
		return j.ended && r.at.Mono-j.since.Mono-j.last.Watched > endedFor
	})
	f := r.builder.frame(r.jobs)
	for _, w := range r.monitor.Windows.Running() {
		f.Windows = append(f.Windows, Window{explain.NewReport(w), "", true})
	}
	ended := r.monitor.Windows.Ended()
	for _, w := range ended[max(0, len(ended)-shownWindows):] {
		f.Windows = append(f.Windows, Window{explain.NewReport(w), "", false})
	}
	f.Windows = newestWindows(f.Windows)
	if len(f.GPUs) == 0 {
		f.NoGPUs = "The recording has no GPU."
	}
	if len(f.Disks) == 0 {
		f.NoDisks = "The recording has no disk with I/O so far."
	}
	if len(f.Jobs) == 0 {
		f.NoJobs = "The recording has no job now. Those of stallspan run --record have one."
	}
	if len(f.Windows) == 0 {
		f.NoWindows = "The recording has no window so far."
	}
	if r.gap != nil {
		f.Notes = append(f.Notes, fmt.Sprintf("the recording ends here: %v", r.gap))
	}
	return f
}
