//go:build linux

package scenario

import (
	"context"
	"time"

	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/lab/pipeline"
)

// stage runs one stage as a window.
func (b *bench) stage(ctx context.Context, m *monitor.Monitor, i int) (*watched, error) {
	s := &b.v.Stages[i]
	w := &watched{stage: s}
	if !s.Idle {
		if err := b.program.Prepare(s.Plan); err != nil {
			return nil, err
		}
		if err := b.storm(s); err != nil {
			return nil, err
		}
	}
	start, least, most, err := b.edge(m)
	if err != nil {
		return nil, err
	}
	if _, err := b.begin(m, i+1, start); err != nil {
		return nil, err
	}
	id := windowID(b.v.Name, b.v.Seed, i+1)
	stop := polls(m, id, &w.polls)
	w.ran, err = b.work(ctx, s)
	end, first, last, failed := b.edge(m)
	stop()
	if err != nil || failed != nil {
		m.Windows.Drop(id)
		return nil, firstOf(err, failed)
	}
	if w.report, err = m.Windows.End(id, end); err != nil {
		return nil, err
	}
	if s.cold() && hasCounters(b.disk) {
		w.device = &Device{Name: b.disk.Device, Least: first.minus(most), Most: last.minus(least)}
		w.device.compare(w.report)
	}
	return w, b.endStorm(ctx)
}

// work does the stage's work.
func (b *bench) work(ctx context.Context, s *Stage) (pipeline.Truth, error) {
	if s.Idle {
		select {
		case <-ctx.Done():
			return pipeline.Truth{}, ctx.Err()
		case <-time.After(s.Length):
			return pipeline.Truth{}, nil
		}
	}
	for _, n := range b.neighbours {
		if n.Load {
			n.running = true
			if err := n.program.Begin(); err != nil {
				return pipeline.Truth{}, err
			}
		}
	}
	return b.program.Go(ctx)
}

// storm prepares the neighbours that load at the same time; endStorm waits for them.
func (b *bench) storm(s *Stage) error {
	for i, n := range b.neighbours {
		if n.Load {
			plan := s.Plan
			plan.Load = b.neighbourModel(i)
			if err := n.program.Prepare(plan); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) endStorm(ctx context.Context) error {
	for _, n := range b.neighbours {
		if n.Load && n.running {
			n.running = false
			if _, err := n.program.End(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
