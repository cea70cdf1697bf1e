package rhythm

import (
	"slices"
	"sort"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

const (
	maxResidents = 64      // processes whose memory of files is followed, the oldest
	maxPoints    = 512     // of their sum; where there would be more, every other one is dropped
	minFall      = 1 << 20 // bytes by which the memory falls when a data set is unmapped
)

// maps follows the memory of mapped files of a job's processes. It grows as pages are touched, and falls back when a
// map ends: a data set that is mapped again shows like a file position that goes back to the begin.
type maps struct {
	residents []resident // by start
	spare     []resident // those of the look before, for the next one
	points    []point    // by time
	fell      []fall     // in this look
}

// resident is the memory of files of a process, in bytes.
type resident struct {
	pid       int
	started   time.Duration
	low, high int64 // since it fell last
	now       int64
	counts    bool // it drives a GPU, or it is the oldest process and none does
}

// point is how many bytes the processes that drive a GPU have touched up to a look, or the oldest process if none does.
// Those that workers touch are not known: they are seen late, and end before the next look.
type point struct {
	at    time.Duration
	bytes float64
}

// fall is a process whose memory of files fell back.
type fall struct {
	pid   int
	bytes int64
}

// look takes the memory of all processes.
func (m *maps) look(f *look) {
	m.fell = m.fell[:0]
	grown := 0.0
	driven := slices.ContainsFunc(f.Processes, func(p detect.Process) bool { return p.Drives })
	old := m.residents
	m.residents, m.spare = m.spare[:0], old
	for i := range f.Processes[:min(len(f.Processes), maxResidents)] {
		p := &f.Processes[i]
		r := resident{p.PID, p.Started, p.Memory, p.Memory, p.Memory, p.Drives || !driven && i == 0}
		k := i // as at nearly every look
		if k >= len(old) || old[k].pid != p.PID {
			k = slices.IndexFunc(old, func(r resident) bool { return r.pid == p.PID })
		}
		if k >= 0 && old[k].started == p.Started && p.Memory > 0 && old[k].now > 0 {
			before := old[k]
			if r.counts {
				grown += max(0, float64(p.Memory-before.now))
			}
			r.low, r.high = min(before.low, p.Memory), max(before.high, p.Memory)
			if lost := before.high - p.Memory; lost >= minFall && lost > (before.high-before.low)/2 {
				m.fell = append(m.fell, fall{p.PID, lost})
				r.low, r.high = p.Memory, p.Memory
			}
		}
		m.residents = append(m.residents, r)
	}
	if n := len(m.points); n > 0 {
		grown += m.points[n-1].bytes
	}
	if len(m.points) == maxPoints {
		for i := range maxPoints / 2 {
			m.points[i] = m.points[2*i+1]
		}
		m.points = m.points[:maxPoints/2]
	}
	m.points = append(m.points, point{f.At, grown})
}

// counts reports whether what a process touches is part of the sum.
func (m *maps) counts(pid int) bool {
	return slices.ContainsFunc(m.residents, func(r resident) bool { return r.pid == pid && r.counts })
}

// fellOf returns by how many bytes the memory of a process fell in this look; 0 if it did not.
func (m *maps) fellOf(pid int) int64 {
	for _, f := range m.fell {
		if f.pid == pid {
			return f.bytes
		}
	}
	return 0
}

// after returns how many of the last looks came after a moment.
func (m *maps) after(at time.Duration) int {
	return len(m.points) - sort.Search(len(m.points), func(i int) bool { return m.points[i].at > at })
}

// level returns how many bytes were touched up to a moment, interpolated between looks.
func (m *maps) level(at time.Duration) (float64, bool) {
	i := sort.Search(len(m.points), func(i int) bool { return m.points[i].at >= at })
	switch {
	case len(m.points) == 0:
		return 0, false
	case i == len(m.points):
		return m.points[i-1].bytes, true
	case i == 0:
		return m.points[0].bytes, m.points[0].bytes == 0 || m.points[0].at == at
	}
	a, b := m.points[i-1], m.points[i]
	return a.bytes + (b.bytes-a.bytes)*float64(at-a.at)/float64(b.at-a.at), true
}
