package monitor

import (
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
)

// Snapshot is the newest reading of every source.
type Snapshot struct {
	Disks     sample.Sample
	Pressures sample.Sample
	Cores     sample.Sample
	Jobs      sample.Sample // with Processes
	GPUs      sample.Sample
}

// learn keeps a reading as the newest of its kind. It reuses the memory of the one before.
func (m *Monitor) learn(s *sample.Sample) {
	l := &m.latest
	if len(s.Disks) > 0 {
		l.Disks.At, l.Disks.Disks = s.At, append(l.Disks.Disks[:0], s.Disks...)
	}
	if len(s.Pressures) > 0 {
		l.Pressures.At, l.Pressures.Pressures = s.At, append(l.Pressures.Pressures[:0], s.Pressures...)
	}
	if len(s.Cores) > 0 {
		l.Cores.At, l.Cores.Cores = s.At, append(l.Cores.Cores[:0], s.Cores...)
	}
	if len(s.Jobs) > 0 {
		l.Jobs.At = s.At
		l.Jobs.Jobs = append(l.Jobs.Jobs[:0], s.Jobs...)
		l.Jobs.Processes = append(l.Jobs.Processes[:0], s.Processes...)
		m.remember(s.Jobs)
	}
	if len(s.GPUs) > 0 {
		sameID := func(a, b sample.GPU) bool { return a.ID == b.ID }
		m.stale = m.stale || !slices.EqualFunc(l.GPUs.GPUs, s.GPUs, sameID)
		l.GPUs.At, l.GPUs.GPUs = s.At, append(l.GPUs.GPUs[:0], s.GPUs...)
	}
}

// Latest is a copy of the newest readings.
func (m *Monitor) Latest() Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.latest
	l.Disks.Disks = slices.Clone(l.Disks.Disks)
	l.Pressures.Pressures = slices.Clone(l.Pressures.Pressures)
	l.Cores.Cores = slices.Clone(l.Cores.Cores)
	l.Jobs.Jobs = slices.Clone(l.Jobs.Jobs)
	l.Jobs.Processes = slices.Clone(l.Jobs.Processes)
	l.GPUs.GPUs = slices.Clone(l.GPUs.GPUs)
	return l
}
