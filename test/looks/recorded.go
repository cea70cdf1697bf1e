package looks

import (
	"errors"
	"io"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/window"
)

// Epoch is an epoch that was announced while a recording was made.
type Epoch struct{ Start, End time.Duration }

// Recorded makes the looks at a job from a recording, one a second, without the files that it had open. It also returns
// the epochs that were announced.
func Recorded(from io.Reader, job string) (all []*Look, announced []Epoch, err error) {
	r, err := recording.NewReader(from)
	if err != nil {
		return nil, nil, err
	}
	m := maker{job: job, origin: r.Header().Origin, began: map[string]time.Duration{}, drivers: map[int]bool{}}
	for {
		var e recording.Entry
		switch err := r.Next(&e); {
		case errors.Is(err, io.EOF):
			return m.looks, m.epochs, nil
		case err != nil:
			return nil, nil, err
		}
		m.add(&e)
	}
}

// maker makes looks.
type maker struct {
	job     string
	origin  time.Duration // of the recording's clock since boot
	rows    []Row
	last    time.Duration
	busy    float64
	drivers map[int]bool // processes that hold memory of a GPU
	began   map[string]time.Duration
	looks   []*Look
	epochs  []Epoch
}

func (m *maker) add(e *recording.Entry) {
	if e.Mark != nil {
		m.mark(e.Mark)
		return
	}
	s := e.Sample
	if len(s.GPUs) > 0 {
		m.busy = 0
		for i := range s.GPUs {
			m.busy += s.GPUs[i].Busy.Seconds()
		}
		for _, p := range s.GPUProcesses {
			m.drivers[p.PID] = true
		}
	}
	for i := range s.Jobs {
		j := &s.Jobs[i]
		if j.ID != m.job {
			continue
		}
		m.rows = append(m.rows, Row{s.At.Mono, [...]float64{
			float64(j.ReadBytes), float64(j.ReadChars), float64(j.WriteBytes), j.CPUTime.Seconds(), m.busy}})
		if m.last != 0 && s.At.Mono-m.last < time.Second {
			continue
		}
		l := &Look{Rows: m.rows, Facts: detect.Facts{Job: m.job, At: s.At.Mono, Last: m.last, HasGPU: len(m.drivers) > 0}}
		for k := range s.Processes {
			if p := &s.Processes[k]; p.Job == m.job {
				l.Processes = append(l.Processes, detect.Process{
					PID: p.PID, Started: p.Started - m.origin, CPUTime: p.CPUTime, Drives: m.drivers[p.PID]})
			}
		}
		m.looks, m.rows, m.last = append(m.looks, l), nil, s.At.Mono
	}
}

func (m *maker) mark(mark *recording.Mark) {
	switch {
	case mark.At == nil:
	case mark.Op == recording.Begin && mark.Window != nil && mark.Window.Kind == window.Epoch:
		m.began[mark.ID] = mark.At.Mono
	case mark.Op == recording.End:
		if start, ok := m.began[mark.ID]; ok {
			m.epochs = append(m.epochs, Epoch{start, mark.At.Mono})
		}
	}
}
