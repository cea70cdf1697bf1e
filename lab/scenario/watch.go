//go:build linux

package scenario

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/lab/pipeline"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// jobName is the program's name in the monitor.
const jobName = "scenario"

// watched is one window that ran.
type watched struct {
	stage  *Stage // nil for the window around all stages
	report *window.Report
	polls  []poll
	ran    pipeline.Truth
	device *Device
}

// watch runs all stages under a monitor that records its readings.
func (b *bench) watch(ctx context.Context, journal monitor.Journal) (windows []*watched, problems []error, err error) {
	m, err := monitor.New(monitor.Config{Accelerator: b.program.Accelerator(), Journal: journal})
	if err != nil {
		return nil, nil, err
	}
	m.Start()
	defer m.Stop()
	if b.group != nil {
		err = m.Jobs.Follow(jobName, 0, b.group.Path, true)
	} else {
		err = m.Jobs.Follow(jobName, b.program.PID(), "", false)
	}
	if err != nil {
		return nil, nil, err
	}
	defer m.Jobs.Unfollow(jobName)
	if err := b.disturb(); err != nil {
		return nil, nil, err
	}
	select {
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-time.After(lead):
	}
	whole, stop := &watched{}, func() {}
	if b.v.Whole != "" {
		if whole.report, err = b.begin(m, 0, m.Now()); err != nil {
			return nil, nil, err
		}
		stop = polls(m, whole.report.ID, &whole.polls)
	}
	for i := range b.v.Stages {
		w, err := b.stage(ctx, m, i)
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("stage %d: %w", i+1, err)
		}
		windows = append(windows, w)
	}
	stop()
	if b.v.Whole != "" {
		if whole.report, err = m.Windows.End(whole.report.ID, m.Now()); err != nil {
			return nil, nil, err
		}
		windows = append(windows, whole)
	}
	return windows, m.Problems(), b.calm()
}

// lead is how long the monitor runs before the first window.
const lead = 300 * time.Millisecond

// begin opens the window of a stage, 0 for the window around all, with the name by which a replay finds it.
func (b *bench) begin(m *monitor.Monitor, stage int, at monitor.Moment) (*window.Report, error) {
	w := window.Window{
		ID: windowID(b.v.Name, b.v.Seed, stage), Kind: window.Epoch, Source: window.Announced, Owned: true, Job: jobName,
		PID: b.program.PID(), Epoch: stage, HasEpoch: true,
	}
	if stage > 0 && b.v.Stages[stage-1].load() {
		w.Kind, w.Model = window.ModelLoad, b.v.Name
	}
	_, err := m.Windows.Begin(w, at)
	return &window.Report{Window: w}, err
}

// edge takes the monitor's reading between two readings of the disk's counters.
func (b *bench) edge(m *monitor.Monitor) (at monitor.Moment, before, after Counters, err error) {
	if !hasCounters(b.disk) {
		return m.Now(), before, after, nil
	}
	if before, err = counters(b.disk.Device); err != nil {
		return at, before, after, err
	}
	at = m.Now()
	after, err = counters(b.disk.Device)
	return at, before, after, err
}

func hasCounters(d *slowdisk.Disk) bool { return d.Device != "" && d.Kind != slowdisk.Local }

// pollEvery is the time between two polls of a running window.
const pollEvery = 250 * time.Millisecond

// polls polls a running window until stop is called, which waits for the last poll.
func polls(m *monitor.Monitor, id string, to *[]poll) (stop func()) {
	var done sync.WaitGroup
	end := make(chan struct{})
	done.Go(func() {
		ticker := time.NewTicker(pollEvery)
		defer ticker.Stop()
		for {
			select {
			case <-end:
				return
			case <-ticker.C:
			}
			running := m.Windows.Running()
			if i := slices.IndexFunc(running, func(r *window.Report) bool { return r.ID == id }); i >= 0 {
				*to = append(*to, look(running[i]))
			}
		}
	})
	return func() {
		close(end)
		done.Wait()
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
