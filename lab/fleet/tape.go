package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// tape is what all agents send variations of: a recording of a machine, as a monitor reads it.
type tape struct {
	first, last sample.Snapshot
	between     []sample.Snapshot // about one a second: the gauges
	took        time.Duration     // from first to last
	slow, usual []emit.Span       // of windows
}

// edges is how far apart the windows are that are cut out of the recording.
const edges = 500 * time.Millisecond

// play reads the recording at path.
func play(path string) (*tape, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	reader, err := recording.NewReader(file)
	if err != nil {
		return nil, err
	}
	m, err := monitor.New(monitor.Config{Recorded: true, Boot: reader.Header().Boot, Interval: reader.Header().Interval})
	if err != nil {
		return nil, err
	}
	defer m.Stop()
	var (
		t       tape
		entry   recording.Entry
		moments []monitor.Moment
		second  time.Duration
	)
	for {
		if err := reader.Next(&entry); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if err := m.Feed(&entry); err != nil {
			return nil, err
		}
		if entry.Mark == nil || entry.Mark.Op != recording.Tick {
			continue
		}
		now := m.Now()
		if n := len(moments); n == 0 || now.At.Mono-moments[n-1].At.Mono >= edges {
			moments = append(moments, now)
		}
		if s := m.Collect(); len(s.GPUs.GPUs) > 0 && len(s.GPUs.GPUDetails) > 0 && s.GPUs.At.Mono-second >= time.Second {
			second = s.GPUs.At.Mono
			t.between = append(t.between, s.Clone())
		}
	}
	if len(t.between) < 3 {
		return nil, fmt.Errorf("%s: it has %d seconds with a GPU, want 3: name another recording", path, len(t.between))
	}
	t.first, t.last = t.between[0], t.between[len(t.between)-1]
	t.took = t.last.Disks.At.Mono - t.first.Disks.At.Mono
	return &t, t.cut(m, moments)
}

// cut makes the windows between all moments.
func (t *tape) cut(m *monitor.Monitor, moments []monitor.Moment) error {
	for i, from := range moments {
		for _, to := range moments[i+1:] {
			id, err := m.Windows.Begin(window.Window{Kind: window.Epoch, Source: window.Announced, Job: "train"}, from)
			if err != nil {
				return err
			}
			report, err := m.Windows.End(id, to)
			if err != nil {
				return err
			}
			if span := emit.WindowSpan(report, config.Spans{}); report.Slow {
				t.slow = append(t.slow, span)
			} else {
				t.usual = append(t.usual, span)
			}
		}
	}
	if len(t.slow) == 0 || len(t.usual) == 0 {
		return fmt.Errorf("the recording has %d slow windows and %d others, want some of each", len(t.slow), len(t.usual))
	}
	return nil
}
