package identity

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/procfile"
)

// reader reads the claims of one user's processes in one container. A process may hold up who reads its memory. Then
// only the claims of its own user wait.
type reader struct {
	busy    bool      // a task reads; this and the next field are guarded by Finder.mu
	waiting []process // at most maxWaiting
}

// process is a process that no other is confused with.
type process struct {
	pid   int
	start uint64
}

const (
	maxReaders = 64
	maxWaiting = 256
	startsIn   = 10 * time.Second // until then, a process may not have its environment yet
	closeIn    = 2 * time.Second  // a read of a process's memory waits while the process changes its mappings
)

// ask reads the claims of a process in the background. Those that do not fit are asked for again.
func (f *Finder) ask(p process, owner string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.readers[owner]
	if r == nil {
		if len(f.readers) >= maxReaders {
			for other, old := range f.readers {
				if !old.busy {
					delete(f.readers, other)
				}
			}
		}
		if len(f.readers) >= maxReaders {
			return
		}
		r = new(reader)
		f.readers[owner] = r
	}
	if len(r.waiting) < maxWaiting && !slices.Contains(r.waiting, p) {
		r.waiting = append(r.waiting, p)
	}
	if !r.busy {
		r.busy = f.asking.Start(func() { f.askAll(r) })
	}
}

func (f *Finder) askAll(r *reader) {
	for {
		f.mu.Lock()
		if len(r.waiting) == 0 {
			r.busy = false
			f.mu.Unlock()
			return
		}
		p := r.waiting[0]
		r.waiting = r.waiting[1:]
		f.mu.Unlock()
		_ = sample.Protect(func() { f.askOne(p) }) // counted there
	}
}

// askOne reads the claims of a process.
func (f *Finder) askOne(p process) {
	type answer struct {
		claims
		some bool // it has an environment
		same bool // the claims are not those of another process or program
	}
	c, err := procfile.Do(f.proc, p.pid, func() answer {
		program := programOf(f.proc, p.pid)
		var a answer
		a.claims, a.some = environment(f.proc, p.pid)
		a.program = programOf(f.proc, p.pid)
		start, ok := startOf(f.proc, p.pid)
		a.same = ok && start == p.start && a.program == program
		return a
	})
	if err != nil || !c.same {
		return // it is asked for again
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.known[p.pid]
	if e == nil || e.start != p.start {
		return
	}
	if !c.some && time.Since(e.first) <= startsIn {
		return
	}
	with := *e
	with.claims, with.again = &c.claims, time.Time{}
	f.known[p.pid] = &with
}
