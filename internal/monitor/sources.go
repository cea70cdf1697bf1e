package monitor

import (
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/cpu"
	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/internal/source/pressure"
	"github.com/stallspan/stallspan/internal/source/process"
)

// machine lists this machine's sources. Pressure comes first and the accelerator right after it: the ledger compares
// those two, so their readings should lie closest together.
func (m *Monitor) machine() []sample.Named {
	root := m.config.Root
	m.pressure = pressure.New(root)
	m.process = process.New(root)
	sources := []sample.Named{{Name: "pressure", Source: m.pressure}}
	if m.config.Accelerator != nil {
		sources = append(sources, sample.Named{Name: "accelerator", Source: m.config.Accelerator})
	}
	sources = append(sources,
		sample.Named{Name: "process", Source: m.process},
		sample.Named{Name: "cpu", Source: cpu.New(root)})
	if m.config.Accelerator == nil {
		found, err := newGPUs(&m.config)
		if !m.withoutGPU(err) {
			m.problems.note("gpu", err)
		}
		m.gpus = found
	}
	disks, err := disk.New(root)
	if err != nil {
		m.problems.note("disk", err)
		return sources
	}
	m.disks = disks
	return append(sources, sample.Named{Name: "disk", Source: disks})
}

func (m *Monitor) close() {
	if m.disks != nil {
		_ = m.disks.Close()
	}
	if m.pressure != nil {
		m.pressure.Close()
	}
	if m.process != nil {
		m.process.Close()
	}
}
