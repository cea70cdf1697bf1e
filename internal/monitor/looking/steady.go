package looking

import (
	"hash/maphash"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/source/process"
)

// A job that has the same files open for many looks, as a server does, is looked at less often: most of a look's calls
// ask for what each descriptor is. It is looked at within a second if it begins or ends a process, if the memory of one
// or of its GPUs changes as by a model, or if it moves more bytes than usual.
const (
	steadyLooks = 10 // in a row that saw the same, a second apart
	steadyEvery = 3 * time.Second
)

// steady is what the last looks at a job saw.
type steady struct {
	seen   uint64 // hash of what was open
	same   int    // looks in a row that saw it, without those within the same second
	usual  uint64 // bytes that it moves in a second, a moving mean: reading a program at its start fades
	moved  uint64 // bytes that it had moved when it was last asked about
	looked uint64 // the same at the last look
	gpu    uint64 // bytes of GPU memory
	memory map[int]process.InMemory
}

var seed = maphash.MakeSeed()

// learn notes what a look saw, and how many bytes the job has moved by then. The last one was some seconds before.
func (s *steady) learn(f *detect.Facts, moved, seconds uint64) {
	var h maphash.Hash
	h.SetSeed(seed)
	for i := range f.Files {
		maphash.WriteComparable(&h, f.Files[i])
	}
	if seen := h.Sum64(); seen != s.seen || !slices.ContainsFunc(f.Processes, known) {
		s.seen, s.same, s.usual = seen, 0, 0
	}
	if seconds > 0 {
		s.same++
	}
	s.usual = (s.usual + (moved-min(s.looked, moved))/max(1, seconds)) / 2
	s.looked, s.moved, s.gpu = moved, moved, f.GPUMemory
}

// known reports whether the files of a process are known.
func known(p detect.Process) bool { return !p.Denied }

// note keeps the memory of a process at a look.
func (s *steady) note(pid int, m process.InMemory) {
	if s.memory == nil {
		s.memory = map[int]process.InMemory{}
	}
	s.memory[pid] = m
}

// steady reports whether a job need not be looked at now: nothing shows that it has other files open than before.
func (l *Looker) steady(j *job, now time.Duration) bool {
	s := &j.steady
	moved := j.look.Moved - min(s.moved, j.look.Moved)
	s.moved = j.look.Moved
	if j.busy || s.same < steadyLooks || now-j.looked >= steadyEvery {
		return false
	}
	if moved > 2*s.usual+larger || j.look.GPUMemory != s.gpu || len(j.look.Processes) != len(s.memory) {
		return false
	}
	for i := range j.look.Processes {
		p := &j.look.Processes[i]
		before, noted := s.memory[p.PID]
		if !noted || j.processes[p.PID] == nil || j.processes[p.PID].started != p.Started {
			return false
		}
		now := process.Memory(l.config.Root, p.PID)
		if now.Size > before.Size+larger || now.Size+larger < before.Size || now.Files > before.Files+larger {
			return false
		}
	}
	return true
}
